package rediscooldown

import (
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
)

// meet brings the two sides together: ARGV[2] is the wait that this process knows of (0 = it only asks), at most ARGV[3], its Max;
// all in µs. The answer is the wait that the fleet knows of. Asking writes nothing.
//
// The key holds the instant and, after a colon, the Max of the hints behind it: an instant further ahead than that was left
// behind by a clock that stepped back, and counts as none.
var meet = redisscript.NewScript(`
local wait, max = tonumber(ARGV[2]), tonumber(ARGV[3])
local till, most = now, 0
local held = redis.call('GET', key)
if held then
  local a, b = string.match(held, '^(%d+):(%d+)$')
  if not a then
    return redis.error_reply('ERR ' .. key .. ' holds something that is no cooldown')
  end
  a, b = tonumber(a), tonumber(b)
  if a > now and a - now <= b then till, most = a, b end
end
if now + wait > till then
  till, most = now + wait, math.max(most, max)
  redis.call('SET', key, int(till) .. ':' .. int(most))
  expire((till - now) / 1000)
end
return int(till - now)
`)

// longest keeps the script's numbers exact: a century and the present are less than 2^53 µs.
const longest = 100 * 365 * 24 * time.Hour

// micros is d in µs, rounded up: nobody comes back too early.
func micros(d time.Duration) int64 {
	d = min(d, longest)
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}
