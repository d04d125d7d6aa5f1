// Shared memory without names: nothing appears in the directory, contents are shared, bad addresses are
// refused.
#include "platform/shared_file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../shared/temporary_directory.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::platform {
namespace {

class SharedFileTest : public ::testing::Test {
 protected:
    // A process that owns a file until it is told to end.
    class Owner {
     public:
        Owner(const std::string& directory, bool dumpable, bool publishes = false) {
            EXPECT_EQ(pipe(said_), 0);
            EXPECT_EQ(pipe(told_), 0);
            pid_ = fork();
            if (pid_ == 0) {
                ::close(told_[1]);
                SharedFile file = SharedFile::create(directory, 4096);
                prctl(PR_SET_DUMPABLE, dumpable);
                if (publishes) file.publish();
                char any;
                if (write(said_[1], &file.address(), sizeof address_) < 0) _exit(1);
                _exit(read(told_[0], &any, 1) == 0 ? 0 : 1);
            }
            EXPECT_EQ(read(said_[0], &address_, sizeof address_), static_cast<ssize_t>(sizeof address_));
        }
        ~Owner() {
            kill(pid_, SIGKILL);
            wait();
            for (const int end : {said_[0], said_[1], told_[0], told_[1]}) ::close(end);
        }

        const FileAddress& address() const { return address_; }
        // It has ended, and its parent has not waited for it.
        void end() {
            kill(pid_, SIGKILL);
            siginfo_t info;
            waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
        }
        void wait() { waitpid(pid_, nullptr, 0); }

     private:
        int said_[2], told_[2];
        pid_t pid_;
        FileAddress address_{};
    };

    // Runs `action` as an ordinary user. Root may look into every process.
    template <typename Action>
    void as_ordinary_user(Action action) {
        std::filesystem::permissions(directory_, std::filesystem::perms::all);
        const pid_t child = fork();
        if (child == 0) {
            constexpr uid_t kNobody = 65534;
            if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
            prctl(PR_SET_DUMPABLE, 1);  // setresuid has taken it away
            action();
            _exit(HasFailure() ? 1 : 0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }

    static std::string why_not_opened(const FileAddress& address) {
        try {
            SharedFile::open(address, 0, SIZE_MAX, 5);
        } catch (const Failure& failure) {
            return failure.what();
        }
        return "";
    }

    void tell_the_ended_from_the_living() {
        as_ordinary_user([this] {
            for (const bool dumpable : {true, false}) {
                Owner owner(directory_, dumpable);
                EXPECT_FALSE(closed_by_owner(owner.address())) << dumpable;
                owner.end();
                EXPECT_TRUE(closed_by_owner(owner.address())) << dumpable;
                owner.wait();
                EXPECT_TRUE(closed_by_owner(owner.address())) << dumpable;
                const std::string why = why_not_opened(owner.address());
                EXPECT_TRUE(why.starts_with("cannot open the mailbox of " + process_here(5) + " (")) << why;
                EXPECT_NE(why.find("It has ended"), std::string::npos) << why;
            }
        });
    }

    test::TemporaryDirectory temporary_;
    const std::string& directory_ = temporary_.path();
};

TEST_F(SharedFileTest, has_no_name_and_is_private_to_the_user) {
    SharedFile file = SharedFile::create(directory_, 8192);
    EXPECT_EQ(test::entries_of(directory_), 0U);
    struct stat status {};
    ASSERT_EQ(fstat(file.address().fd, &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    EXPECT_EQ(status.st_nlink, 0U);
    EXPECT_EQ(status.st_blocks * 512, 8192) << "the memory must be there before the first touch";
}

TEST_F(SharedFileTest, another_process_sees_what_the_owner_writes) {
    SharedFile file = SharedFile::create(directory_, 4096);
    file.data()[100] = std::byte{42};
    pid_t child = fork();
    if (child == 0) {
        SharedFile same = SharedFile::open(file.address(), 0);
        bool right = same.data()[100] == std::byte{42};
        same.data()[200] = std::byte{7};
        _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(file.data()[200], std::byte{7});
}

TEST_F(SharedFileTest, a_mapping_outlives_its_owner) {
    SharedFile peer;
    {
        SharedFile file = SharedFile::create(directory_, 4096);
        file.data()[0] = std::byte{1};
        peer = SharedFile::open(file.address(), 0);
    }
    EXPECT_EQ(peer.data()[0], std::byte{1});
}

TEST_F(SharedFileTest, another_file_behind_the_descriptor_is_refused) {
    SharedFile file = SharedFile::create(directory_, 4096);
    SharedFile other = SharedFile::create(directory_, 4096);
    FileAddress forged = file.address();
    forged.fd = other.address().fd;
    EXPECT_THROW(SharedFile::open(forged, 0), Failure);
    FileAddress larger = file.address();
    larger.bytes = 1 << 20;
    EXPECT_THROW(SharedFile::open(larger, 0), Failure);
}

TEST_F(SharedFileTest, a_peer_in_other_namespaces_waits_until_the_owner_publishes) {
    SharedFile file = SharedFile::create(directory_, 4096);
    FileAddress foreign = file.address();
    foreign.namespaces.user ^= 1;
    EXPECT_THROW(SharedFile::open(foreign, 0), Failure);

    std::thread owner([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        file.publish();
    });
    SharedFile peer = SharedFile::open(foreign, 10'000);
    owner.join();
    EXPECT_EQ(test::entries_of(directory_), 1U);
    file.unpublish();
    EXPECT_EQ(test::entries_of(directory_), 0U);
    peer.data()[9] = std::byte{3};
    EXPECT_EQ(file.data()[9], std::byte{3});
}

TEST_F(SharedFileTest, an_owner_that_has_ended_is_known_before_its_parent_waits_for_it) {
    tell_the_ended_from_the_living();
}

TEST_F(SharedFileTest, an_owner_that_has_ended_is_known_where_proc_hides_processes) {
    (void)reachable_by_pid({});  // the namespaces are those at the first question
    const pid_t child = fork();
    if (child == 0) {
        constexpr int kNotPermitted = 77;
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("proc", "/proc", "proc", 0, "hidepid=2") != 0)
            _exit(kNotPermitted);
        tell_the_ended_from_the_living();
        _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace with a /proc of its own";
    EXPECT_EQ(status, 0);
}

TEST_F(SharedFileTest, the_name_of_an_owner_that_was_killed_goes_when_the_next_one_publishes) {
    std::ofstream(directory_ + "/velo-1").put('x');  // looks similar, and is not
    Owner living(directory_, true, true), killed(directory_, true, true);
    killed.end();
    killed.wait();
    EXPECT_EQ(test::entries_of(directory_), 3U);
    SharedFile file = SharedFile::create(directory_, 4096);
    EXPECT_EQ(test::entries_of(directory_), 3U) << "a file without a name does not look";
    file.publish();
    EXPECT_EQ(test::entries_of(directory_), 3U);
    FileAddress foreign = living.address();
    foreign.namespaces.user ^= 1;
    EXPECT_EQ(SharedFile::open(foreign, 0).bytes(), 4096U);
    foreign = file.address();
    foreign.namespaces.user ^= 1;
    EXPECT_EQ(SharedFile::open(foreign, 0).bytes(), 4096U);
    file.unpublish();
    EXPECT_EQ(test::entries_of(directory_), 2U);
}

// Returns 0 if an owner that has ended, and that nobody has waited for, is not taken for one that keeps
// others out, as which it appears to all but root.
int look_at_an_ended_owner(const std::string& directory) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return 2;
    const pid_t owner = fork();
    if (owner == 0) {
        const SharedFile file = SharedFile::create(directory, 4096);
        _exit(write(pipe_ends[1], &file.address(), sizeof file.address()) == sizeof file.address() ? 0 : 1);
    }
    FileAddress address;
    siginfo_t end;
    if (read(pipe_ends[0], &address, sizeof address) != sizeof address) return 3;
    if (waitid(P_PID, static_cast<id_t>(owner), &end, WEXITED | WNOWAIT) != 0) return 4;
    return openable_by_pid(address) ? 0 : 1;
}

TEST_F(SharedFileTest, memory_in_the_file_of_an_owner_that_has_ended_is_an_error_that_says_so) {
    auto owner = std::make_unique<Owner>(directory_, true);
    SharedFile same = SharedFile::open(owner->address(), 0);
    same.provide(0, 4096);
    owner.reset();
    try {
        same.provide(0, 4096);
        FAIL() << "of a process that has ended";
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), VELO_ERR_UNREACHABLE);
        EXPECT_NE(std::strstr(failure.what(), "It has ended"), nullptr) << failure.what();
    }
}

TEST_F(SharedFileTest, an_owner_that_has_ended_does_not_keep_others_out) {
    std::filesystem::permissions(directory_, std::filesystem::perms::all);
    const pid_t child = fork();
    if (child == 0) {
        constexpr uid_t kNobody = 65534;
        if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(5);
        prctl(PR_SET_DUMPABLE, 1);  // setresuid has taken it away
        _exit(look_at_an_ended_owner(directory_));
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(SharedFileTest, a_limit_on_the_size_of_files_is_an_error_and_no_signal) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer has files of its own";
#endif
    const pid_t child = fork();
    if (child == 0) {
        const rlimit limit{8192, 8192};
        setrlimit(RLIMIT_FSIZE, &limit);
        (void)SharedFile::create(directory_, 8192);
        try {
            (void)SharedFile::create(directory_, 12288);
        } catch (const Failure& failure) {
            _exit(std::strstr(failure.what(), "ulimit -f") != nullptr ? 0 : 2);
        }
        _exit(1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

// In a child that has made a file of its own, and to which `action` happens then: twice, the file of another
// one.
template <typename Action>
int opens_after(const std::string& directory, const FileAddress& address, Action action) {
    const pid_t child = fork();
    if (child == 0) {
        const SharedFile own = SharedFile::create(directory, 4096);
        action();
        for (int i = 0; i < 2; ++i) {
            try {
                (void)SharedFile::open(address, 0);
            } catch (const Failure&) {
                _exit(1);
            }
        }
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

TEST_F(SharedFileTest, a_peer_is_opened_when_the_program_has_taken_all_descriptors) {
    Owner owner(directory_, true);
    EXPECT_EQ(opens_after(directory_, owner.address(),
                          [] {
                              const rlimit limit{64, 64};
                              setrlimit(RLIMIT_NOFILE, &limit);
                              while (dup(0) >= 0) {
                              }
                          }),
              0);
}

TEST_F(SharedFileTest, a_peer_is_opened_when_the_program_has_another_root) {
    if (geteuid() != 0) GTEST_SKIP() << "chroot is for root";
    Owner owner(directory_, true);
    EXPECT_EQ(opens_after(directory_, owner.address(), [this] { EXPECT_EQ(chroot(directory_.c_str()), 0); }),
              0);
}

TEST_F(SharedFileTest, a_full_or_missing_directory_is_named_together_with_the_size) {
    constexpr std::size_t kTooMuch = std::size_t{1} << 45;
    void* place = ::mmap(nullptr, kTooMuch, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) GTEST_SKIP() << "no address space for 32 TiB (ThreadSanitizer, qemu)";
    ::munmap(place, kTooMuch);
    try {
        SharedFile::create(directory_, kTooMuch);
        FAIL() << "32 TiB of shared memory";
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), VELO_ERR_RESOURCE);
        EXPECT_NE(std::strstr(failure.what(), directory_.c_str()), nullptr) << failure.what();
        EXPECT_NE(std::strstr(failure.what(), "35184372088832"), nullptr) << failure.what();
    }
    EXPECT_THROW(SharedFile::create(directory_ + "/nowhere", 4096), Failure);
    EXPECT_EQ(test::entries_of(directory_), 0U);
}

}  // namespace
}  // namespace velo::platform
