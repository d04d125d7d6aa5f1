/* Random messages against a model of what has to arrive.
 * random_messages SEED ROUNDS MESSAGES
 *
 * Every rank draws the same plan of each round from SEED: who sends how much to whom, with which tag, in which communicator
 * (one of them an intercommunicator), in which mode, from which layout of memory, and how the receiver asks for it. Which
 * message a receive gets follows from the rules of MPI once its source is known: the first of that source that it accepts and
 * that no receive posted before it has taken. Tag, length, every byte, and the bytes around are compared with that. */
#include "common.h"

enum { kWorld, kCopy, kReversed, kHalves, kBetween, kCommunicators };
enum { kExact, kAnySource, kAnyTag, kAny, kPatterns };
enum { kSend, kSsend, kBsend, kRsend, kBlocking, kIsend = kBlocking, kIssend, kIbsend, kPersistent, kIrsend, kModes };
enum { kProbe, kIprobe, kMprobe, kImprobe, kProbes };
enum { kTags = 3, kElement = 8, kStride = 24, kGuard = 64, kGap = 0xa5 };

typedef struct {
    int source, dest, tag, mode;
    size_t bytes;
    bool spread, exact, taken;
} Message;

/* How a rank receives in a communicator. */
typedef struct {
    bool probes, spread;
    int pattern;
    size_t capacity;
} Receiver;

typedef struct {
    unsigned char* data;
    size_t capacity;
    bool spread;
} Buffer;

/* A receive that was asked for: in the order in which MPI was asked. */
typedef struct {
    int communicator, source, tag;
    Buffer buffer;
    MPI_Status status;
} Receive;

static MPI_Comm communicators[kCommunicators];
static MPI_Datatype element;
static uint64_t state, own_state;
static Message* plan[kCommunicators];
static int planned[kCommunicators];
static Receiver* receivers[kCommunicators];
static Receive* receives;
static MPI_Request* requests;
static int posted, received, round_;

static uint32_t draw(uint32_t below) {
    return next_random(&state) % below;
}

/* The rank of `world` as `communicator` calls it, and back. */
static int local_rank(int communicator, int world) {
    if (communicator == kReversed) return ranks - 1 - world;
    return communicator >= kHalves ? world / 2 : world;
}

static int world_rank(int communicator, int local) {
    if (communicator == kReversed) return ranks - 1 - local;
    if (communicator == kHalves) return 2 * local + my_rank % 2;
    return communicator == kBetween ? 2 * local + (my_rank + 1) % 2 : local;
}

static void make_communicators(void) {
    communicators[kWorld] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[kCopy]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank, &communicators[kReversed]);
    MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, my_rank, &communicators[kHalves]);
    MPI_Intercomm_create(communicators[kHalves], 0, MPI_COMM_WORLD, (my_rank + 1) % 2, 1, &communicators[kBetween]);
    MPI_Datatype eight;
    MPI_Type_contiguous(kElement, MPI_BYTE, &eight);
    MPI_Type_create_resized(eight, 0, kStride, &element);
    MPI_Type_commit(&element);
    MPI_Type_free(&eight);
}

/* Memory in which data lies in one piece, or in elements with gaps, with guards before and behind. */
static size_t extent(const Buffer* buffer) {
    return buffer->spread ? (buffer->capacity + kElement - 1) / kElement * kStride : buffer->capacity;
}

static Buffer buffer_of(size_t capacity, bool spread) {
    Buffer buffer = {NULL, capacity, spread};
    unsigned char* memory = allocate(extent(&buffer) + 2 * kGuard);
    memset(memory, kGap, extent(&buffer) + 2 * kGuard);
    buffer.data = memory + kGuard;
    return buffer;
}

static size_t place(const Buffer* buffer, size_t byte) {
    return buffer->spread ? byte / kElement * kStride + byte % kElement : byte;
}

static void release(Buffer* buffer) {
    free(buffer->data - kGuard);
}

static void fill(Buffer* buffer, size_t bytes, uint64_t seed) {
    unsigned char* plain = allocate(bytes);
    pattern_fill(plain, bytes, seed);
    for (size_t i = 0; i < bytes; ++i) buffer->data[place(buffer, i)] = plain[i];
    free(plain);
}

/* The buffer holds the pattern in its first `bytes` bytes, and nothing else was written. */
static void verify_bytes(const Buffer* buffer, size_t bytes, uint64_t seed) {
    unsigned char* expected = allocate(extent(buffer) + 2 * kGuard);
    memset(expected, kGap, extent(buffer) + 2 * kGuard);
    Buffer model = {expected + kGuard, buffer->capacity, buffer->spread};
    fill(&model, bytes, seed);
    const unsigned char* found = buffer->data - kGuard;
    for (size_t i = 0; i < extent(buffer) + 2 * kGuard; ++i) {
        CHECK(found[i] == expected[i], "round %d: byte %ld of a message of %zu is %02x instead of %02x", round_,
              (long)i - kGuard, bytes, found[i], expected[i]);
    }
    free(expected);
}

static int count_of(const Buffer* buffer, size_t bytes) {
    return (int)(buffer->spread ? (bytes + kElement - 1) / kElement : bytes);
}

static MPI_Datatype type_of(const Buffer* buffer) {
    return buffer->spread ? element : MPI_BYTE;
}

static size_t draw_bytes(void) {
    switch (draw(10)) {
    case 0: return 0;
    case 1: case 2: case 3: return draw(65);
    case 4: case 5: case 6: return draw(4200);
    case 7: case 8: return draw(70000);
    default: return draw(600000);
    }
}

static bool together(int communicator, int a, int b) {
    if (communicator == kHalves) return a % 2 == b % 2;
    return communicator != kBetween || a % 2 != b % 2;
}

/* Which modes are safe: a blocking send waits for its receive, so only where receives are posted before anything is sent;
 * a ready one, only if there is a barrier between. */
static int draw_mode(bool probes, bool ready) {
    for (;;) {
        int mode = (int)draw(kModes);
        bool needs_ready = mode == kRsend || mode == kIrsend;
        if ((mode < kBlocking && mode != kBsend && probes) || (needs_ready && (!ready || probes))) continue;
        return mode;
    }
}

static void draw_plan(int messages, bool ready) {
    for (int c = 0; c < kCommunicators; ++c) {
        planned[c] = 0;
        for (int dest = 0; dest < ranks; ++dest) {
            receivers[c][dest] = (Receiver){draw(3) == 0, draw(3) == 0, (int)draw(kPatterns), 0};
        }
    }
    for (int i = 0; i < messages; ++i) {
        int c = (int)draw(kCommunicators), source = (int)draw((uint32_t)ranks), dest = (int)draw((uint32_t)ranks);
        size_t bytes = draw_bytes();
        int tag = (int)draw(kTags);
        bool spread = draw(4) == 0, exact = draw(2) == 0;
        Receiver* receiver = &receivers[c][dest];
        int mode = draw_mode(receiver->probes, ready);
        if (!together(c, source, dest)) continue;
        if (spread) bytes = bytes / kElement * kElement;
        plan[c][planned[c]++] =
            (Message){source, dest, tag, mode, bytes, spread, exact || receiver->pattern == kExact, false};
        if (bytes > receiver->capacity) receiver->capacity = bytes;
    }
}

static uint64_t seed_in(int communicator, int index, int source) {
    return seed_of(source, (uint64_t)round_ << 16 | (unsigned)index, communicator);
}

static Receive* ask(int c, const Message* message, const Receiver* receiver) {
    Receive* receive = &receives[received++];
    bool any_source = !message->exact && (receiver->pattern == kAnySource || receiver->pattern == kAny);
    bool any_tag = !message->exact && (receiver->pattern == kAnyTag || receiver->pattern == kAny);
    receive->communicator = c;
    receive->source = any_source ? MPI_ANY_SOURCE : local_rank(c, message->source);
    receive->tag = any_tag ? MPI_ANY_TAG : message->tag;
    receive->buffer = buffer_of(receiver->capacity, receiver->spread);
    return receive;
}

/* First those that say exactly what they want: what these leave is then as much as the others can take. */
static void for_my_receives(bool probes, void (*each)(Receive*)) {
    for (int c = 0; c < kCommunicators; ++c) {
        const Receiver* receiver = &receivers[c][my_rank];
        if (receiver->probes != probes) continue;
        for (int exact = 1; exact >= 0; --exact) {
            for (int i = 0; i < planned[c]; ++i) {
                const Message* message = &plan[c][i];
                if (message->dest == my_rank && message->exact == exact) each(ask(c, message, receiver));
            }
        }
    }
}

static void post(Receive* receive) {
    Buffer* buffer = &receive->buffer;
    MPI_Irecv(buffer->data, count_of(buffer, buffer->capacity), type_of(buffer), receive->source, receive->tag,
              communicators[receive->communicator], &requests[posted++]);
}

static void probe(Receive* receive) {
    MPI_Comm communicator = communicators[receive->communicator];
    Buffer* buffer = &receive->buffer;
    MPI_Status seen;
    MPI_Message message = MPI_MESSAGE_NULL;
    int found = 0;
    switch (next_random(&own_state) % kProbes) {
    case kProbe: MPI_Probe(receive->source, receive->tag, communicator, &seen); break;
    case kMprobe: MPI_Mprobe(receive->source, receive->tag, communicator, &message, &seen); break;
    case kIprobe:
        while (!found) MPI_Iprobe(receive->source, receive->tag, communicator, &found, &seen);
        break;
    default:
        while (!found) MPI_Improbe(receive->source, receive->tag, communicator, &found, &message, &seen);
    }
    int count = count_of(buffer, buffer->capacity);
    if (message != MPI_MESSAGE_NULL) {
        MPI_Mrecv(buffer->data, count, type_of(buffer), &message, &receive->status);
    } else {
        MPI_Recv(buffer->data, count, type_of(buffer), seen.MPI_SOURCE, seen.MPI_TAG, communicator, &receive->status);
    }
    CHECK(seen.MPI_SOURCE == receive->status.MPI_SOURCE && seen.MPI_TAG == receive->status.MPI_TAG &&
              bytes_received(&seen) == bytes_received(&receive->status),
          "round %d: probed rank %d, tag %d, %d bytes; received rank %d, tag %d, %d bytes", round_, seen.MPI_SOURCE, seen.MPI_TAG,
          bytes_received(&seen), receive->status.MPI_SOURCE, receive->status.MPI_TAG, bytes_received(&receive->status));
}

static void send(int c, const Message* message, Buffer* buffer, MPI_Request* request) {
    MPI_Comm communicator = communicators[c];
    int count = count_of(buffer, message->bytes), dest = local_rank(c, message->dest), tag = message->tag;
    void* data = buffer->data;
    MPI_Datatype type = type_of(buffer);
    *request = MPI_REQUEST_NULL;
    switch (message->mode) {
    case kSend: MPI_Send(data, count, type, dest, tag, communicator); break;
    case kSsend: MPI_Ssend(data, count, type, dest, tag, communicator); break;
    case kBsend: MPI_Bsend(data, count, type, dest, tag, communicator); break;
    case kRsend: MPI_Rsend(data, count, type, dest, tag, communicator); break;
    case kIssend: MPI_Issend(data, count, type, dest, tag, communicator, request); break;
    case kIbsend: MPI_Ibsend(data, count, type, dest, tag, communicator, request); break;
    case kIrsend: MPI_Irsend(data, count, type, dest, tag, communicator, request); break;
    case kPersistent:
        MPI_Send_init(data, count, type, dest, tag, communicator, request);
        MPI_Start(request);
        break;
    default: MPI_Isend(data, count, type, dest, tag, communicator, request);
    }
}

static void complete(int first, int count, bool for_receives) {
    MPI_Status* statuses = allocate(sizeof *statuses * (size_t)(count + 1));
    int* indices = allocate(sizeof *indices * (size_t)(count + 1));
    switch (next_random(&own_state) % 3) {
    case 0:
        MPI_Waitall(count, requests + first, statuses);
        for (int i = 0; i < count && for_receives; ++i) receives[i].status = statuses[i];
        break;
    case 1:
        for (int left = count, index; left > 0; --left) {
            MPI_Waitany(count, requests + first, &index, statuses);
            if (index == MPI_UNDEFINED) break;
            if (for_receives) receives[index].status = *statuses;
        }
        break;
    default:
        for (int done = 0; done != MPI_UNDEFINED;) {
            MPI_Testsome(count, requests + first, &done, indices, statuses);
            for (int i = 0; i < done && done != MPI_UNDEFINED && for_receives; ++i) receives[indices[i]].status = statuses[i];
        }
    }
    free(statuses);
    free(indices);
}

/* The message that this receive has to have got, given its source. */
static Message* expected(const Receive* receive, int* index) {
    int c = receive->communicator, source = world_rank(c, receive->status.MPI_SOURCE);
    for (*index = 0; *index < planned[c]; ++*index) {
        Message* message = &plan[c][*index];
        bool fits = receive->tag == MPI_ANY_TAG || receive->tag == message->tag;
        if (message->dest == my_rank && message->source == source && fits && !message->taken) return message;
    }
    fail(__FILE__, __LINE__, "round %d: a message of rank %d in communicator %d that it has not sent", round_, source, c);
}

static void verify(Receive* receive) {
    int index;
    Message* message = expected(receive, &index);
    const MPI_Status* status = &receive->status;
    message->taken = true;
    CHECK(receive->source == MPI_ANY_SOURCE || receive->source == status->MPI_SOURCE, "round %d: from rank %d instead of %d",
          round_, status->MPI_SOURCE, receive->source);
    CHECK(status->MPI_TAG == message->tag && bytes_received(status) == (int)message->bytes,
          "round %d: tag %d and %d bytes instead of tag %d and %zu bytes from rank %d", round_, status->MPI_TAG,
          bytes_received(status), message->tag, message->bytes, message->source);
    verify_bytes(&receive->buffer, message->bytes, seed_in(receive->communicator, index, message->source));
    release(&receive->buffer);
}

/* Some ranks come late, as if they had computed. */
static void tarry(void) {
    uint32_t chance = next_random(&own_state) % 40;
    if (chance < 6) sleep_ms(chance == 0 ? 150 : (long)chance * 4);
}

static int run_round(int messages) {
    bool ready = draw(2) == 0;
    draw_plan(messages, ready);
    Buffer* sent = allocate(sizeof *sent * (size_t)messages);
    int sends = 0;
    posted = received = 0;
    tarry();
    for_my_receives(false, post);
    if (ready) MPI_Barrier(MPI_COMM_WORLD);
    tarry();
    int first_send = posted;
    for (int c = 0; c < kCommunicators; ++c) {
        for (int i = 0; i < planned[c]; ++i) {
            const Message* message = &plan[c][i];
            if (message->source != my_rank) continue;
            sent[sends] = buffer_of(message->bytes, message->spread);
            fill(&sent[sends], message->bytes, seed_in(c, i, my_rank));
            send(c, message, &sent[sends], &requests[first_send + sends]);
            ++sends;
        }
    }
    for_my_receives(true, probe);
    if (next_random(&own_state) % 2) tarry();
    complete(0, posted, true);
    complete(first_send, sends, false);
    for (int i = 0; i < sends; ++i) {
        MPI_Request* request = &requests[first_send + i];
        if (*request != MPI_REQUEST_NULL) MPI_Request_free(request); /* a persistent one */
        release(&sent[i]);
    }
    for (int i = 0; i < received; ++i) verify(&receives[i]);
    free(sent);
    int all, total = 0;
    MPI_Allreduce(&received, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int c = 0; c < kCommunicators; ++c) total += planned[c];
    CHECK(all == total, "round %d: %d messages received instead of %d", round_, all, total);
    return total;
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    long seed = argument(argc, argv, 1, 1), rounds = argument(argc, argv, 2, 10);
    int messages = (int)argument(argc, argv, 3, 100), total = 0;
    CHECK(ranks >= 2, "at least two ranks");
    state = (uint64_t)seed;
    own_state = (uint64_t)seed * 1000 + (uint64_t)my_rank;
    make_communicators();
    for (int c = 0; c < kCommunicators; ++c) {
        plan[c] = allocate(sizeof **plan * (size_t)messages);
        receivers[c] = allocate(sizeof **receivers * (size_t)ranks);
    }
    receives = allocate(sizeof *receives * (size_t)messages);
    requests = allocate(sizeof(MPI_Request) * (size_t)messages * 2);
    int buffer_bytes = messages * (600000 + MPI_BSEND_OVERHEAD);
    void* buffered = allocate((size_t)buffer_bytes);
    MPI_Buffer_attach(buffered, buffer_bytes);
    for (round_ = 0; round_ < rounds; ++round_) total += run_round(messages);
    MPI_Buffer_detach(&buffered, &buffer_bytes);
    free(buffered);
    if (my_rank == 0) printf("rounds=%ld\nmessages=%d\n", rounds, total);
    MPI_Finalize();
    return 0;
}
