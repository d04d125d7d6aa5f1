// Nodes connected by UCX: one worker for the process, one endpoint for each peer, made on first contact.
//
// Threads: all is called under the lock of the engine, progress included.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <deque>
#include <utility>

#include "fabric/network.h"
#include "fabric/ucx/address.h"
#include "fabric/ucx/connections.h"
#include "fabric/ucx/intake.h"
#include "fabric/ucx/landings.h"

namespace velo::fabric::ucx {

using Clock = std::chrono::steady_clock;

struct Flight;
struct Bulk;

class UcxNetwork;

struct Remote {
    UcxNetwork* network = nullptr;
    std::uint64_t name = 0;
    Address address;  // complete if `known`; set once
    std::string text() const;  // "rank 3 on node7"
    bool known = false;
    bool gone = false;                // it has said that it leaves,
    std::uint32_t last_sequence = 0;  // and how many parcels it has sent,
    bool lost = false;                // or it will never say so
    ucp_ep_h endpoint = nullptr;
    std::uint32_t next_sequence = 0;
    // Several parcels are about to be sent, and those that have yet to leave.
    bool series = false;
    std::uint32_t collected = 0;
    std::unique_ptr<Flight> collection;
    // Under a policy that refuses by sender (rnr). Packets sent there, and of them those that are known to
    // have left the mailbox; packets of it that have left ours, and of them those that it has been told of.
    std::uint64_t sent_packets = 0;
    std::uint64_t known_retrieved = 0;
    std::uint64_t retrieved = 0, told = 0;
    std::size_t outstanding = 0;  // bytes of messages that UCX holds
    // Data past the mailbox: what waits for room in the window, what UCX holds all of, and the window.
    std::deque<std::unique_ptr<Bulk>> bulks;
    std::vector<std::unique_ptr<Bulk>> flying;
    std::size_t bulk_outstanding = 0;
    std::uint32_t next_bulk = 0;
    Landings landings;
    int broken = UCS_OK;  // ucs_status_t of the endpoint
};

class UcxNetwork final : public Network {
 public:
    UcxNetwork(const NetworkConfig& config, Receiver& receiver);
    ~UcxNetwork() override;

    const std::vector<std::byte>& address() const override { return packed_; }
    mailbox::Reader<> reader() override { return intake_.reader(); }
    flow::PeerIndex claim(std::span<const std::byte> address) override;
    std::unique_ptr<Link> open(flow::PeerIndex peer, flow::PolicyConfig* flow,
                               flow::PeerIndex* index) override;
    void begin_series(flow::PeerIndex peer) override { remotes_[peer].series = true; }
    void end_series(flow::PeerIndex peer) override;
    void retrieved(flow::PeerIndex peer, std::uint32_t packets) override;
    std::uint64_t name_of(flow::PeerIndex peer) const override { return remotes_[peer].name; }
    void send_bulk(flow::PeerIndex to, const MessageView& message, void* context) override;
    bool progress() override;
    bool has_completed() const override { return !placed_.empty() || !sent_.empty() || !leaving_.empty(); }
    std::vector<Placed> placed() override { return std::exchange(placed_, {}); }
    std::vector<void*> sent_bulk() override { return std::exchange(sent_, {}); }
    std::vector<Left> left() override;

    std::uint32_t refusal_limit() const { return config_.refusal_limit; }
    // For the links: sends one parcel. The data is copied, unless it stays: then UCX may read it until
    // nothing of that peer is outstanding. Under the engine's lock.
    void send(Remote& to, Parcel parcel, const MessageView& message, std::size_t offset, bool stays);

 private:
    friend struct Flight;
    struct Receipt;

    void open_context();
    void open_worker();
    void set_handler(unsigned id, ucp_am_recv_callback_t handler, std::uint32_t flags);
    void connect(Remote& remote);
    void say(Remote& to, unsigned id, std::span<const std::byte> payload);
    const char* take_parcel(flow::PeerIndex from, const Parcel& parcel, std::byte* data, std::size_t bytes);
    void close_endpoints();
    bool all_tcp() const;
    std::unique_ptr<Flight> take_flight(Remote& to);
    void stamp(Remote& to, Parcel& parcel) const;
    void launch(std::unique_ptr<Flight> flight, unsigned id, const void* data, std::size_t count,
                std::uint32_t flags, ucp_datatype_t type = ucp_dt_make_contig(1));
    void launch_packed(std::unique_ptr<Flight>& flight, unsigned id);
    void await(std::unique_ptr<Flight>& flight, ucs_status_ptr_t request);
    void collect(Remote& to, const Parcel& parcel, const MessageView& message, std::size_t offset,
                 bool in_place);
    void launch_collection(Remote& to);
    void launch_eager(std::unique_ptr<Flight>& flight, unsigned id);
    void launch_copied(std::unique_ptr<Flight> flight, unsigned id);
    void open_packing();
    void end_flight(Flight* ended, ucs_status_t status);
    void spare(std::unique_ptr<Flight> flight);

    // bulk.cc
    struct Arrival {
        Placed placed;
        std::uint64_t bytes;
        void* descriptor;  // UCX's
        bool here;         // the data is there and not only announced
    };
    void send_by_rendezvous(std::unique_ptr<Bulk> bulk);
    void pump(Remote& to);
    void landed(const Flight& flight);
    const char* take_fragment(flow::PeerIndex from, const Fragment& fragment,
                              std::span<const std::byte> header, std::span<const std::byte> data);
    void accept_arrivals();
    void accept(Arrival& arrival, std::byte* to);
    void finish(ucs_status_ptr_t request, Clock::time_point deadline);

    flow::PeerIndex index_of(std::uint64_t name, bool create);
    void learn(flow::PeerIndex index, Address address);
    flow::PeerIndex sender_of(std::uint64_t key, std::uint64_t name);
    [[gnu::noinline]] flow::PeerIndex other_sender_of(std::uint64_t key, std::uint64_t name);
    void broke(Remote& remote, ucs_status_t status);
    void refuse(const char* what);
    // What a callback of UCX does: nothing may be thrown through UCX.
    template <typename Action>
    ucs_status_t shielded(Action action);
    [[noreturn]] static void blame(std::uint64_t sender, const char* fault);
    bool is_lost(flow::PeerIndex index) const;
    void check_lost();
    void watch_connections();
    void look_at_connections();
    std::string lost_text(const Remote& remote) const;

    static ucs_status_t on_parcel(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_parcels(void* self, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param);
    void parcel_arrived(const Parcel& parcel, std::byte* data, std::size_t bytes);
    static ucs_status_t on_bulk(void* self, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_fragment(void* self, const void* header, std::size_t header_bytes, void* data,
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
    ucp_datatype_t packing_ = 0;  // of a Flight, which UCX copies from
    ucp_request_param_t packing_params_{};
    Address own_;
    std::vector<std::byte> packed_;
    Intake intake_;
    std::deque<Remote> remotes_;  // by index
    std::uint32_t strangers_ = 0;
    struct {
        std::uint64_t name;
        flow::PeerIndex index;
    } last_sender_;                 // of a parcel; a name stays whose it is, and UINT64_MAX is nobody's
    bool fragments_ = false;        // how data past the mailbox travels, see bulk.cc
    std::unique_ptr<Flight> next_;  // of a parcel of its own
    std::vector<std::unique_ptr<Flight>> spares_;  // for the next sends
    std::vector<Remote*> due_;                     // whose window has room again
    std::vector<Arrival> arrivals_;
    std::vector<Placed> placed_;
    std::vector<void*> sent_;
    std::vector<flow::PeerIndex> leaving_;  // gone, and not yet in `left`
    Receiver* receiver_;                    // nullptr: this process closes, and wants nothing any more
    bool any_broken_ = false;
    Clock::time_point broken_since_{};
    // The next looks for connections, which UCX makes some time after their first use.
    int looks_ = 0;
    Connections connections_{Silence::Time(config_.patience_ms)};
    bool silent_ = false;  // one was
    Clock::time_point next_look_{};
    std::uint32_t polls_ = 0;
    std::exception_ptr thrown_;  // in a callback of UCX; progress throws it again
    bool refused_ = false;
};

}  // namespace velo::fabric::ucx
