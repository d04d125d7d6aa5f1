// One run: N processes with a policy object each, their network and a workload, from the first event to the
// last. The policies and the ledgers around them are the plugin's own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/event_queue.h"
#include "core/random.h"
#include "flow/ledger.h"
#include "flow/outbox.h"
#include "flow/refusal.h"
#include "machine/network.h"
#include "machine/parameters.h"
#include "machine/peers.h"
#include "machine/scheduling.h"
#include "machine/train.h"
#include "workload/workload.h"

namespace velo::sim {

// btl_velo_by_reference
enum class ByReference : std::uint8_t { kAuto, kNever, kAlways };

struct FlowOptions {
    std::string policy = "none";
    std::uint32_t slots_per_peer = 64;  // data and credit region together
    std::uint32_t credit_slots = 2;
    bool piggyback = true;
    bool delay_credits = true;
    bool free_of_charge = false;  // the processor's part of flow control costs no time
    bool finite_mailbox = false;  // a policy that does not count: its mailbox is as large as the others'
    ByReference by_reference = ByReference::kAuto;
    std::uint64_t outbox = 262144;  // bytes of each process
    // That a process has under way for what came by reference; 0: it reads the data where it is.
    std::uint32_t most_gets = 1;
    // What rnr, the schemes of Liu & Panda and lazy have of their own; the numbers of peers and slots in it
    // do not count.
    flow::PolicyConfig own;
};

struct Totals {
    std::uint64_t messages = 0;
    std::uint64_t messages_delayed = 0;  // not all packets had a credit when the message was handed over
    std::uint64_t data_packets = 0;
    flow::Counters flow;
    std::uint64_t events = 0;
    std::uint64_t slots_high_water = 0;  // of the fullest mailbox
    std::uint64_t state_bytes = 0;       // of all policies' state
    std::uint32_t largest_quota = 0;     // that any process has given any other, at the end
    std::uint64_t messages_by_reference = 0;
    std::uint64_t batches = 0;
    std::uint64_t batched_messages = 0;
    std::uint64_t outbox_high_water = 0;  // bytes of chunks, of the fullest outbox
    std::uint64_t outbox_full = 0;        // messages for which there was no chunk
};

struct Outcome {
    Totals totals;
    std::vector<flow::Counters> flow_of;    // of each process
    std::vector<std::uint64_t> delayed_of;  // messages delayed at each process
    std::vector<Time> iteration_end;        // when the last process had finished it
    Time end = 0;
    std::string fault;         // an invariant that broke, empty if none
    std::string deadlock;      // who waits for whom, empty if all processes came to their end
    double seconds = 0;        // of the processor that simulates
    std::uint64_t digest = 0;  // of all deliveries, in order: equal runs have equal digests

    bool failed() const { return !fault.empty() || !deadlock.empty(); }
    // Mean time of an iteration without the first `warm_up` ones; NaN if there are no others.
    double iteration_us(std::uint32_t warm_up) const;
};

class Simulation : private flow::Carrier, private goal::Executor {
 public:
    // Makes the policy of one process; for rules that are not in the engine's table.
    using PolicyMaker = std::function<std::unique_ptr<flow::Policy>(const flow::PolicyConfig&)>;

    // Throws std::runtime_error with the reason if the policy does not accept its configuration.
    Simulation(const Machine& machine, const FlowOptions& flow, const Workload& workload,
               const PolicyMaker& make = {});
    ~Simulation() override = default;

    Outcome run();
    // Called when process 0 has finished an iteration.
    void on_iteration(std::function<void(std::uint32_t)> callback) { on_iteration_ = std::move(callback); }

    const flow::Policy& policy(std::uint32_t process) const { return *processes_[process].policy; }
    const Peers& peers() const { return peers_; }

 private:
    enum class State : std::uint8_t {
        kBusy,     // an event will wake it
        kStalled,  // its data is not yet in the network interface
        kIdle,     // waits for an arrival
    };
    struct Process {
        std::unique_ptr<flow::Policy> policy;
        std::optional<flow::Ledger> ledger;
        flow::Refusal* refusal = nullptr;  // of the policy
        std::vector<Step> steps;
        TrainQueue mailbox;
        TrainQueue refused;  // arrivals that a full mailbox without credits keeps in the network
        Time busy_until = 0;
        std::uint64_t unmatched = 0;  // messages for kReceiveAny
        std::uint32_t step = 0;
        std::uint32_t iteration = 0;
        std::uint32_t slots_used = 0;
        std::uint32_t slots_high_water = 0;
        std::uint32_t capacity = UINT32_MAX;  // of its mailbox, if the policy bounds what is in it
        std::uint32_t in_interface = 0;       // data trains that the interface has not taken
        std::uint32_t queued = 0;             // messages in the queues of all peers
        std::uint32_t waits_for = kNone;      // peer index of a blocking send without credits
        std::uint32_t fetching = 0;           // RMA transfers that have not arrived
        std::uint32_t pulling = 0;            // gets for REFs under way
        TrainQueue pulls;                     // gets that wait until there are fewer
        std::uint64_t delayed = 0;
        State state = State::kBusy;
        bool finished = false;
        bool synchronising = false;
        bool released = false;
    };
    // A message, or the rest of one, that waits for credits.
    struct Pending {
        std::uint32_t bytes = 0;
        std::uint32_t packets = 0;
        std::uint32_t next = kNone;
        goal::Vertex ends = goal::kNoVertex;  // the operation that has finished when it has left
        bool waited = false;                  // was left in the queue for want of a credit
        bool begun = false;                   // a part of it has left
    };
    struct Pair {
        flow::Account account;
        std::uint32_t head = kNone;  // pending messages
        std::uint32_t tail = kNone;
        std::uint32_t unmatched = 0;  // messages received that no step has asked for
    };

    // Beside Pair, under a policy whose mailbox refuses.
    struct Link {
        TrainQueue held;                // sender role: refused, until its timer has run out
        std::uint32_t sequence = 0;     // sender role: of the next packet
        std::uint32_t expected = 0;     // receiver role: the packet that comes next
        std::uint32_t unretrieved = 0;  // receiver role: packets in the mailbox
        bool timer = false;
    };
    // Receiver role: a REF whose data is under way. A message that comes after it must not be matched before.
    struct Landing {
        std::uint32_t next = kNone;
        std::uint32_t behind = 0;  // messages that ended after it, and before the next REF
        bool ends_message = false;
        bool landed = false;
    };
    struct Landings {
        std::uint32_t first = kNone;
        std::uint32_t last = kNone;
    };
    // Of both roles, where what goes by reference is read in place.
    struct Batch {
        std::uint32_t used = 0, room = 0;  // of the chunk of the open one; room == 0: none is
        std::uint64_t polls_at_send = 0;   // of the process, when something was sent to the peer last
        bool awaits_answer = false;        // nothing has come from the peer since
        bool follows = false;              // receiver role: a REF has told of one in this chunk
        TrainQueue arrived;                // receiver role: what has not been read
    };
    struct Polling {
        std::uint64_t polls = 0;  // that found nothing
        Time since = 0;
        bool idle = false;                          // they go on, since then
        std::vector<std::uint32_t> open, followed;  // peers whose batches are
    };
    // Of a process that opens windows on demand.
    struct Contacts {
        Time changed = 0;  // when something last came that has to do with windows
        bool timer = false;
        bool overdue = false;
    };

    // flow::Carrier, for the process that acts.
    flow::Account& account(flow::PeerIndex peer) override { return pair(actor_, peer).account; }
    void carry(flow::Account& to, wire::PacketKind kind, std::uint32_t value) override;
    bool send_queued(flow::Account& to) override;

    void connect(const PolicyMaker& make);
    void adapt_to(const Process& process);
    Time skew();
    void dispatch(const Event& event);
    void arrive(std::uint32_t train);
    void accept(std::uint32_t train);
    void serve_rma(std::uint32_t train);
    void wake(std::uint32_t p);
    void rest(std::uint32_t p);
    bool next_step(std::uint32_t p);
    void perform(std::uint32_t p, const Step& step);
    void send(std::uint32_t p, const Step& step, goal::Vertex ends = goal::kNoVertex);
    void send_locally(std::uint32_t p, const Step& step);
    bool receive(std::uint32_t p, const Step& step);
    void get(std::uint32_t p, std::uint32_t from, std::uint32_t bytes, std::uint32_t landing);
    bool synchronised(std::uint32_t p);
    void release(std::uint32_t p);
    bool waits(std::uint32_t p, const Step& step);
    void send_packets(std::uint32_t p, Pair& to, Pending& message, std::uint32_t count);
    void send_train(std::uint32_t p, Pair& to, Train train);
    void message_arrived(std::uint32_t p, std::uint32_t index);
    void submit(Train train);
    void retrieve(std::uint32_t p);
    void retrieve_data(std::uint32_t p, std::uint32_t index, const Train& train);
    bool attend(std::uint32_t p);
    void rouse(std::uint32_t p);
    // A mailbox that refuses: refusal.cc.
    bool admit(std::uint32_t train);
    void refused(std::uint32_t train, bool for_want_of_a_buffer);
    void retry(std::uint32_t p, std::uint32_t index);
    bool holds(std::uint32_t p, std::uint32_t index) const;
    // By reference: referring.cc.
    void open_outboxes();
    bool refer(std::uint32_t p, Pair& to, Pending& message, std::uint32_t credits);
    void fetch(std::uint32_t p, std::uint32_t index, const Train& reference);
    void count_read(std::uint32_t sender, std::uint32_t reader);
    auto look() {
        return [this](flow::OutboxShare& share) { share.read = read_[&share - shares_.data()]; };
    }
    void read_in_place(std::uint32_t p, std::uint32_t index, const Train& reference);
    void pull(std::uint32_t p);
    bool lands_later(std::uint32_t p, std::uint32_t index);
    void give_back(Train& data);
    void landed(std::uint32_t p, std::uint32_t index, const Train& data);
    bool refers_anyway(const Pending& message) const;
    // Batches: batching.cc.
    void open_batches();
    bool rested(std::uint32_t p, const Batch& to) const;
    static bool batch_holds(const Batch& open, std::uint32_t bytes);
    void take_credits(std::uint32_t p, const Pair& to, std::uint32_t bytes);
    bool send_in_batch(std::uint32_t p, Pair& to, const Pending& message, std::uint32_t credits);
    bool goes_plainly(std::uint32_t p, const Pending& message, std::uint32_t credits) const;
    void append(std::uint32_t p, Pair& to, std::uint32_t bytes);
    void close(std::uint32_t p, std::uint32_t index);
    void publish(std::uint32_t p, std::uint32_t index, std::uint32_t bytes, bool message);
    void note_sent_to(std::uint32_t p, std::uint32_t index);
    void published(std::uint32_t train);
    void follow(std::uint32_t p, std::uint32_t index);
    bool read_batch(std::uint32_t p, std::uint32_t index);
    bool read_batches(std::uint32_t p);
    void begin_polling(std::uint32_t p);
    void end_polling(std::uint32_t p);
    void close_rested(std::uint32_t p);
    // Windows on demand: contact.cc.
    void watch_patience(std::uint32_t p);
    void lose_patience(std::uint32_t p);
    void ask_another(std::uint32_t p);
    void take_notes(std::uint32_t p);
    // Schedules: scheduling.cc. goal::Executor, for the process that acts.
    void send(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void receive(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void work(goal::Run& run, goal::Vertex v, const goal::Operation& operation) override;
    void open_schedules();
    bool run_schedule(std::uint32_t p);
    void note_sent(std::uint32_t from, std::uint32_t to, const goal::Exchange::Message& message);
    void schedule_arrival(std::uint32_t p, std::uint32_t index);
    void schedule_arrival(std::uint32_t p, const goal::Exchange::Message& message, std::uint32_t iteration);
    void schedule_match(std::uint32_t p, goal::Vertex v, const goal::Exchange::Message& message);
    void transfer_ended(std::uint32_t transfer);
    void operation_ended(std::uint32_t p, goal::Vertex v);
    void conclude(Outcome& outcome);
    std::string stuck() const;

    Pair& pair(std::uint32_t p, std::uint32_t index) { return pairs_[peers_.first(p) + index]; }

    Machine machine_;
    FlowOptions flow_;
    const Workload& workload_;
    EventQueue events_;
    TrainPool trains_;
    Network network_;
    Peers peers_;
    std::vector<Process> processes_;
    std::vector<Pair> pairs_;
    std::vector<Pending> pendings_;
    std::uint32_t free_pending_ = kNone;

    // Of the policy, which is the same one everywhere.
    bool on_demand_ = false;
    bool marks_backlog_ = false;
    bool refusing_ = false;
    bool has_timers_ = false;
    Time watching_ = 0;                            // the processor's part of a threshold
    std::vector<Link> links_;                      // as pairs_, if refusing_
    std::vector<std::vector<std::uint32_t>> due_;  // of each process: peers whose queues may go on
    std::vector<Contacts> contacts_;               // of each process, if on_demand_
    bool refers_ = false;
    unsigned reference_shift_ = 0;  // by reference goes what takes more packets than the credits >> this
    std::uint32_t most_packets_ = UINT32_MAX;  // that a mailbox takes of one sender at a time
    std::vector<flow::Outbox> outboxes_;       // of each process, if refers_
    std::vector<flow::OutboxShare> shares_;    // as pairs_, if refers_
    std::vector<std::uint64_t> read_;          // likewise: what was sent by reference and has been read
    std::vector<Landings> landings_of_;        // as pairs_, if refers_
    std::vector<Landing> landings_;
    std::uint32_t free_landing_ = kNone;
    bool batches_ = false;
    std::vector<Batch> batches_of_;  // as pairs_, if batches_
    std::vector<Polling> polling_;   // of each process, if batches_
    std::size_t patience_timers_ = 0;
    std::uint64_t quiet_digest_ = 0;  // the deliveries when patience ran out last
    std::size_t quiet_timers_ = 0;    // how often it has since, with nothing else under way

    std::unique_ptr<Scheduling> scheduling_;  // if the workload is schedules

    // While a process acts: who, and how far its own clock has come. Its acts affect others through events
    // only, so it may run ahead until it has to look at its mailbox again.
    std::uint32_t actor_ = 0;
    Time clock_ = 0;

    Time send_packet_, receive_packet_, account_, credit_packet_, send_message_, receive_message_, poll_,
        local_message_;
    std::vector<Time> iteration_end_;
    std::function<void(std::uint32_t)> on_iteration_;
    Totals totals_;
    std::uint32_t unfinished_ = 0;
    std::uint32_t synchronising_ = 0;
    Random random_;
    std::uint64_t digest_ = 0xcbf29ce484222325;
    std::string fault_;
};

}  // namespace velo::sim
