// A limit on how long UCX's TCP connections may wait for an acknowledgement.
#pragma once

namespace velo::fabric::ucx {

// UCX marks its connections by these keep-alive settings, which are Velo's choice; nothing else in the
// process is likely to have all three.
inline constexpr int kKeepIdleSeconds = 7;
inline constexpr int kKeepIntervalSeconds = 2;

// Sets TCP_USER_TIMEOUT on the TCP connections of this process that carry the mark. Keep-alive alone finds
// an idle connection dead; while data is unacknowledged Linux would go on for a quarter of an hour.
// Returns how many connections were set.
int limit_unacknowledged(unsigned timeout_ms);

}  // namespace velo::fabric::ucx
