// The C interface of messages: translates handles, catches failures. No logic of its own.
#include "api/velo_messages.h"

#include <cstring>
#include <type_traits>

#include "api/handle.h"
#include "messaging/fast_path.h"
#include "parameters/table.h"
#include "platform/layout.h"

using velo::Failure;
using velo::api::attempted;
using velo::api::guarded;
using velo::matching::Key;
using velo::messaging::Messenger;
using velo::messaging::Parked;

struct velo_messenger {
    velo_messenger(velo_engine* on, const velo_messenger_config& config)
        : messenger(on->engine, config), engine(on) {}

    Messenger messenger;
    velo_engine* engine;
};

static_assert(VELO_ANY_SOURCE == velo::matching::kAnySource && VELO_ANY_TAG == velo::matching::kAnyTag);

velo::messaging::Messenger& velo::api::messenger_of(velo_messenger* messenger) {
    return messenger->messenger;
}

namespace {

Key key_of(const velo_key& key) {
    return {key.context, key.source, key.tag};
}

velo_key key_of(const Key& key) {
    return {key.context, key.source, key.tag};
}

Parked* parked(velo_message* message) {
    return reinterpret_cast<Parked*>(message);
}

}  // namespace

extern "C" {

velo_messenger_config velo_default_messenger_config(void) {
    static_assert(noexcept(velo::parameters::messenger_defaults()));
    return velo::parameters::messenger_defaults();
}

velo_status velo_messenger_open(velo_engine* engine, const velo_messenger_config* config,
                                velo_messenger** messenger, char* error, size_t error_bytes) {
    *messenger = nullptr;
    return guarded(error, error_bytes, [&] {
        velo::parameters::check(*config);
        *messenger = new velo_messenger(engine, *config);
    });
}

void velo_messenger_watch(velo_messenger* messenger,
                          bool (*is_dead)(void* of_caller, uint32_t context, int32_t source),
                          void* of_caller) {
    attempted([&] { messenger->messenger.watch(is_dead, of_caller); });
}

void velo_messenger_close(velo_messenger* messenger) {
    static_assert(std::is_nothrow_destructible_v<velo_messenger>);
    delete messenger;
}

const void* velo_messenger_address(const velo_messenger* messenger, size_t* bytes) {
    static_assert(noexcept(messenger->messenger.address()));
    *bytes = sizeof(velo::messaging::Address);
    return &messenger->messenger.address();
}

velo_status velo_messenger_connect(velo_messenger* messenger, velo_peer* peer, const void* address,
                                   size_t bytes) {
    return guarded(messenger->engine, [&] {
        velo::messaging::Address copy;
        velo::platform::check_layout({static_cast<const std::byte*>(address), bytes}, copy.kMagic,
                                     sizeof copy, "a peer");
        std::memcpy(&copy, address, sizeof copy);
        messenger->messenger.connect(*peer, copy);
        return VELO_OK;
    });
}

bool velo_message_now(velo_messenger* messenger, velo_peer* peer, uint32_t context, int32_t source,
                      int32_t tag, const void* data, size_t bytes) {
    const Key key{context, source, tag};
    const auto* const from = static_cast<const std::byte*>(data);
    static_assert(noexcept(messenger->messenger.try_send_fast(*peer, key, from, bytes)));
    return messenger->messenger.try_send_fast(*peer, key, from, bytes);
}

velo_status velo_message_start(velo_messenger* messenger, velo_peer* peer, uint32_t context, int32_t source,
                               int32_t tag, const void* data, size_t bytes, velo_send_mode mode,
                               velo_message_send* send) {
    return guarded(messenger->engine, [=] {
        if (peer != nullptr) messenger->messenger.look_for_room(*peer, bytes);
        return messenger->messenger.send(peer, Key{context, source, tag}, static_cast<const std::byte*>(data),
                                         bytes, mode, send);
    });
}

velo_status velo_message_receive_start(velo_messenger* messenger, uint32_t context, int32_t source,
                                       int32_t tag, velo_message_receive* receive) {
    return guarded(messenger->engine, [=] {
        messenger->messenger.receive(Key{context, source, tag}, receive);
        return VELO_OK;
    });
}

bool velo_message_cancel(velo_messenger* messenger, velo_message_receive* receive) {
    return guarded(messenger->engine, [=] { return messenger->messenger.cancel(receive); });
}

bool velo_message_probe(velo_messenger* messenger, velo_key pattern, velo_key* key, size_t* bytes) {
    return guarded(messenger->engine, [=] {
        Key found;
        if (!messenger->messenger.probe(key_of(pattern), &found, bytes)) return false;
        *key = key_of(found);
        return true;
    });
}

velo_message* velo_message_take(velo_messenger* messenger, velo_key pattern, velo_key* key, size_t* bytes) {
    Parked* message = guarded(messenger->engine, [=] { return messenger->messenger.take(key_of(pattern)); });
    if (message == nullptr) return nullptr;
    *key = key_of(message->key);
    *bytes = message->bytes;
    return reinterpret_cast<velo_message*>(message);
}

velo_status velo_message_receive_taken(velo_messenger* messenger, velo_message* message,
                                       velo_message_receive* receive) {
    return guarded(messenger->engine, [&] {
        receive->announced = 0;
        messenger->messenger.consume(parked(message), receive);
        return VELO_OK;
    });
}

void velo_message_forget(velo_messenger* messenger, uint32_t context) {
    guarded(messenger->engine, [&] {
        messenger->messenger.forget(context);
        return VELO_OK;
    });
}

void velo_messenger_observe(const velo_messenger* messenger, velo_messenger_state* state) {
    *state = {};
    attempted([&] { *state = messenger->messenger.observe(); });
}

}  // extern "C"
