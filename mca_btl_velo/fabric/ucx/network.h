// Nodes connected by UCX: one worker for the process, one endpoint for each peer, made on first contact.
//
// Threads: any may send; one at a time calls progress, arrivals, accept and received. UCX calls back with its
// own lock held, so a callback takes no lock that is held by whoever calls UCX: directory_ and done_ are
// leaves.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>

#include "fabric/network.h"
#include "fabric/ucx/address.h"
#include "fabric/ucx/intake.h"

namespace velo::fabric::ucx {

using Clock = std::chrono::steady_clock;

// What is being sent until UCX has done with it.
struct Flight;

class UcxNetwork;

struct Remote {
    UcxNetwork* network = nullptr;
    std::uint64_t name = 0;
    Address address;  // complete if `known`; set once, under the directory's lock
    std::atomic<bool> known{false};
    std::atomic<bool> gone{false};  // it has said that it leaves
    ucp_ep_h endpoint = nullptr;
    std::uint32_t next_sequence = 0;
    // Under a policy that refuses by sender (rnr). Packets sent there, and of them those that are known to
    // have left the mailbox; packets of it that have left ours, and of them those that it has been told of.
    std::uint64_t sent_packets = 0;
    std::atomic<std::uint64_t> known_retrieved{0};
    std::uint64_t retrieved = 0, told = 0;
    std::atomic<std::size_t> outstanding{0};  // bytes that UCX holds
    std::atomic<int> broken{UCS_OK};          // ucs_status_t of the endpoint
};

class UcxNetwork final : public Network {
 public:
    explicit UcxNetwork(const NetworkConfig& config);
    ~UcxNetwork() override;

    const std::vector<std::byte>& address() const override { return packed_; }
    mailbox::Reader<> reader() override { return intake_.reader(); }
    flow::PeerIndex claim(std::span<const std::byte> address) override;
    std::unique_ptr<Link> open(flow::PeerIndex peer, flow::PolicyConfig* flow,
                               flow::PeerIndex* index) override;
    void retrieved(flow::PeerIndex peer, std::uint32_t packets) override;
    std::uint64_t name_of(flow::PeerIndex peer) const override { return remotes_[peer].name; }
    void send_bulk(flow::PeerIndex to, const MessageView& message, void* context) override;
    bool progress() override;
    std::vector<BulkArrival> arrivals() override { return std::exchange(arrivals_, {}); }
    bool accept(BulkArrival& arrival, void* to) override;
    std::vector<BulkArrival> received() override { return std::exchange(received_, {}); }
    std::vector<void*> sent_bulk() override;

    std::uint32_t refusal_limit() const { return config_.refusal_limit; }
    // For the links: sends one parcel; the data is copied. Under the engine's lock.
    void send(Remote& to, Parcel parcel, const MessageView& message, std::size_t offset);

 private:
    friend struct Flight;
    struct Receipt;

    void open_context();
    void open_worker();
    void set_handler(unsigned id, ucp_am_recv_callback_t handler, std::uint32_t flags);
    void connect(Remote& remote);
    void say(Remote& to, unsigned id, std::span<const std::byte> payload);
    void close_endpoints();
    void finish(ucs_status_ptr_t request, Clock::time_point deadline);

    flow::PeerIndex index_of(std::uint64_t name, bool create);
    void learn(flow::PeerIndex index, Address address);
    flow::PeerIndex sender_of(std::uint64_t key, std::uint64_t name);
    void broke(Remote& remote, ucs_status_t status);
    void refuse(const char* what);
    void check_lost();
    void watch_connections();
    void limit_connections();
    std::string lost_text(const Remote& remote) const;

    static ucs_status_t on_parcel(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_bulk(void* self, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_hello(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_goodbye(void* self, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_retrieved(void* self, const void* header, std::size_t header_bytes, void* data,
                                     std::size_t bytes, const ucp_am_recv_param_t* param);
    static void on_error(void* remote, ucp_ep_h endpoint, ucs_status_t status);
    static void on_sent(void* request, ucs_status_t status, void* flight);
    static void on_received(void* request, ucs_status_t status, std::size_t bytes, void* receipt);

    NetworkConfig config_;
    std::vector<std::uint64_t> names_;  // of the regular peers
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    Address own_;
    std::vector<std::byte> packed_;
    Intake intake_;
    std::mutex connect_lock_;
    std::mutex directory_;
    std::deque<Remote> remotes_;  // by index
    std::atomic<std::uint32_t> strangers_{0};
    std::unique_ptr<Flight> spare_;  // for the next parcel
    std::vector<BulkArrival> arrivals_, received_;
    std::mutex done_lock_;
    std::vector<void*> done_;
    std::atomic<bool> any_broken_{false};
    Clock::time_point broken_since_{};
    // The next looks at the connections, which UCX makes some time after their first use.
    std::atomic<int> looks_{0};
    Clock::time_point next_look_{};
    std::uint32_t polls_ = 0;
    std::string fault_;
    bool refused_ = false;
};

}  // namespace velo::fabric::ucx
