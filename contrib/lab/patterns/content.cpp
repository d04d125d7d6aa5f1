#include "pattern.h"

namespace velo::lab {

unsigned char content(int from, int to, int place) {
    // 251 is prime: neighbours in rank or place differ.
    return static_cast<unsigned char>((from * 31 + to * 7 + place) % 251);
}

void fill(std::vector<unsigned char>& buffer, std::size_t offset, int bytes, int from, int to) {
    for (int place = 0; place < bytes; ++place) buffer[offset + place] = content(from, to, place);
}

long count_defects(const std::vector<unsigned char>& buffer, std::size_t offset, int bytes, int from,
                   int to) {
    long defects = 0;
    for (int place = 0; place < bytes; ++place) defects += buffer[offset + place] != content(from, to, place);
    return defects;
}

}  // namespace velo::lab
