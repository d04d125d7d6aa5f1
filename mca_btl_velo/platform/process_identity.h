// Who this process is, as far as other processes on the machine need it in order to reach its memory.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

namespace velo::platform {

// The namespaces that decide who may look into whose /proc entry: inodes, 0 if nobody may. That is so where
// /proc does not tell, and for a process that is not dumpable, as those of an executable that its user may
// not read. Those at the first call; so is machine_identity.
struct Namespaces {
    std::uint64_t pid;
    std::uint64_t user;
};
Namespaces own_namespaces();

// True if two processes in these namespaces can name each other by pid, and the kernel lets one user's
// processes there open each other's descriptors.
bool see_each_other(const Namespaces& a, const Namespaces& b);

// The same number in all processes between two boots of a machine, and no other machine's; 0 if /proc does
// not tell.
std::uint64_t machine_identity();

// As people know this machine; empty if it has no name.
std::string host_name();

// Which job this process is of; once.
void know_own_job(std::uint64_t process_name) noexcept;
// "rank 3", or "rank 3 of job 17" for a process of another job. The array: without asking for memory.
std::array<char, 40> process_array(std::uint64_t process_name) noexcept;
std::string process_text(std::uint64_t process_name);
// "rank 3 on node7", of a process on this machine.
std::string process_here(std::uint64_t process_name);
std::array<char, 128> here_array(std::uint64_t process_name) noexcept;
// That this process was killed: the same words from whoever finds it.
std::array<char, 240> death_array(std::uint64_t process_name) noexcept;

// 64 random bits from the kernel; never 0.
std::uint64_t random_nonce();

}  // namespace velo::platform
