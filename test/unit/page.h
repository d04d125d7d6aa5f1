// The table of a page of the documentation follows from a table of the code. VELO_WRITE_PAGES in the
// environment: it is written instead of compared.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace velo::test {

inline std::string contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

// The first table behind `heading`.
inline void expect_page_to_hold(const std::string& path, const std::string& table,
                                const std::string& heading = "") {
    std::string page = contents(path);
    const std::size_t first = page.find("| name |", page.find(heading));
    ASSERT_NE(first, std::string::npos);
    const std::size_t length = page.find("\n\n", first) + 1 - first;
    if (std::getenv("VELO_WRITE_PAGES") != nullptr)
        std::ofstream(path) << page.replace(first, length, table);
    else
        EXPECT_EQ(page.substr(first, length), table);
}

}  // namespace velo::test
