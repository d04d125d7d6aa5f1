// SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash that nobody can work out without the key.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

namespace velo::fabric::udp {

using Key = std::array<std::byte, 16>;

class SipHash {
 public:
    explicit SipHash(const Key& key) {
        std::uint64_t k[2];
        std::memcpy(k, key.data(), sizeof k);
        v_[0] = k[0] ^ 0x736f6d6570736575;
        v_[1] = k[1] ^ 0x646f72616e646f6d;
        v_[2] = k[0] ^ 0x6c7967656e657261;
        v_[3] = k[1] ^ 0x7465646279746573;
    }

    // Of all parts, one behind the other. Every part but the last is a multiple of 8 bytes long.
    std::uint64_t operator()(std::initializer_list<std::span<const std::byte>> parts) const {
        State v = v_;
        std::uint64_t total = 0, tail = 0;
        for (const std::span<const std::byte> part : parts) {
            const std::size_t whole = part.size() / 8 * 8;
            for (std::size_t at = 0; at < whole; at += 8) absorb(v, word(part.data() + at, 8));
            if (part.size() > whole) tail = word(part.data() + whole, part.size() - whole);
            total += part.size();
        }
        absorb(v, tail | total << 56);
        v[2] ^= 0xff;
        for (int i = 0; i < 4; ++i) round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
    }

 private:
    using State = std::array<std::uint64_t, 4>;

    static std::uint64_t word(const std::byte* from, std::size_t bytes) {
        static_assert(std::endian::native == std::endian::little);
        std::uint64_t word = 0;
        std::memcpy(&word, from, bytes);
        return word;
    }
    static void absorb(State& v, std::uint64_t word) {
        v[3] ^= word;
        round(v);
        round(v);
        v[0] ^= word;
    }
    static void round(State& v) {
        v[0] += v[1];
        v[1] = std::rotl(v[1], 13) ^ v[0];
        v[0] = std::rotl(v[0], 32);
        v[2] += v[3];
        v[3] = std::rotl(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = std::rotl(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = std::rotl(v[1], 17) ^ v[2];
        v[2] = std::rotl(v[2], 32);
    }

    State v_;
};

}  // namespace velo::fabric::udp
