// A limit on how long UCX's TCP connections may wait for an acknowledgement.
#pragma once

namespace velo::fabric::ucx {

// UCX's connections are known by these keep-alive times, which are Velo's choice: nothing else in the process
// is likely to have both. UCX sets them at its first keep-alive round after it made the connection.
inline constexpr int kRoundSeconds = 1;
inline constexpr int kKeepIdleSeconds = 7;
inline constexpr int kKeepIntervalSeconds = 2;

// Sets TCP_USER_TIMEOUT on the TCP connections of this process that carry the mark. Keep-alive alone finds
// an idle connection dead; while data is unacknowledged Linux would go on for a quarter of an hour.
// Returns how many connections were set.
int limit_unacknowledged(unsigned timeout_ms);

}  // namespace velo::fabric::ucx
