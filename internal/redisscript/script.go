package redisscript

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script and its digest: package-level, made once.
type Script struct {
	source string
	sha    string
}

// NewScript puts the prelude in front of body. It does not talk to a server; a mistake in the Lua shows at the first call.
//
// body finds:
//
//	key      KEYS[1], the instance's one key
//	now      integer microseconds since 1970: the server's TIME, asked for once, or the virtual ARGV[1]
//	ARGV[2]… the arguments of the call
//	int(x)   the integer x as a string of digits, exact up to 2^53: what a script returns and stores instead of numbers
//	         (Redis cuts a returned 0.4 to 0, and tostring keeps 14 digits); a fraction is rounded down
//	expire(ms)  sets key's life, rounded up, at least 1 ms and at most 100 years, at least 1 h under a virtual clock;
//	         not a number, and infinite, are 100 years
//
// Line numbers in the server's error messages count the prelude's lines, too.
func NewScript(body string) *Script {
	source := prelude + body
	sum := sha1.Sum([]byte(source)) // not for security: it is the name that the server gives a script
	return &Script{source: source, sha: hex.EncodeToString(sum[:])}
}

const prelude = `local key = KEYS[1]
local function int(x) return string.format('%.0f', math.floor(x)) end
local now = tonumber(ARGV[1])
local virtual = now ~= 0
if not virtual then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local function expire(ms)
  if not (ms < 3155760000000) then ms = 3155760000000 end
  if virtual and ms < 3600000 then ms = 3600000 end
  if ms < 1 then ms = 1 end
  redis.call('PEXPIRE', key, int(math.ceil(ms)))
end
`
