-- One turn of one process: give back, renew, take, wait; in this order, in one step.
--
-- The sorted set holds, by score:
--   below 0      -(end of its place in the line)   a waiting process: 'w', the microsecond since when (16 digits), how many slots
--                                                  it has had (16), how many it wants (3), its id (16 bytes)
--   in (0, 1)    a recent now / 1e16               '!', the marker: this set is a bulkhead's
--   above 1      the end of its lease              a permit's token, 16 bytes; or '?', the quarantine
local limit, lease, patience = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local seen, bound, id, wait = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'
local queued, releases, renewals, wanted = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local at = 13 + releases -- behind the releases
local instant = string.format('%016.0f', now)

-- A call of Redis, and a score that comes from it, cost more than all the rest here: what the set holds of everything that is
-- named is asked for at once, and of releases only where one may be late (ARGV[13]): else they are there.
local asked = now >= tonumber(ARGV[13]) and releases or 0
local known = redis.call('ZMSCORE', key, '!', '?', unpack(ARGV, at - asked + 1, at + renewals + math.min(1, wanted)))
local mark = known[1]
if not mark and redis.call('EXISTS', key) == 1 then
  return redis.error_reply('ERR the key holds a sorted set that no bulkhead wrote: ' .. key)
end
local back = mark and mark * 1e16 - now or 0
if back <= 1000000 then back = 0 end -- else the server's clock stepped back
local function lives(score) return score and score - back > now end

-- A lease is over when its time is, not when somebody has swept it away.
local released, freed = string.rep('1', releases - asked), 0
for i = 1, asked do released = released .. (lives(known[2 + i]) and '1' or '0') end

-- What gives memory back comes first: a server that is out of memory lets a script go on that has written already, so that
-- releases never fail, while a turn that only takes is refused as a whole.
local function release()
  if releases > 0 then freed = redis.call('ZREM', key, unpack(ARGV, 14, at)) end
end

-- A turn that was under way for longer than its process waited for it. What it wanted to keep or take may have been given
-- back since.
if bound > 0 and now > bound then
  release()
  return {now, 1, 0, 0, 0, released, ''}
end

release()
if back > 0 then -- every end moves with the clock, or the dead would hold their slots that long
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local score = tonumber(all[i + 1])
    if score > 1 then
      redis.call('ZADD', key, int(math.max(2, score - back)), all[i])
    elseif score < 0 then
      redis.call('ZADD', key, int(math.min(-1, score + back)), all[i])
    end
  end
end

-- The marker is the first that is written where nothing was given back, so that it is what a full server refuses. Else a recent
-- one will do.
local ends, added = int(now + lease), {}
if releases == 0 or renewals > 0 or back > 0 or not mark or math.abs(now - mark * 1e16) > 100000 then
  local kept = {string.format('%.17g', now / 1e16), '!'}
  for i = 1, renewals do
    added[i] = lives(known[2 + asked + i]) and 0 or 1
    kept[2 * i + 1], kept[2 * i + 2] = ends, ARGV[at + i]
  end
  redis.call('ZADD', key, unpack(kept))
end
at = at + renewals
freed = freed + redis.call('ZREMRANGEBYSCORE', key, '(1', instant)

local flags, quarantine = 0, lives(known[2]) and known[2] - back -- its end
if not mark and seen > 0 and now - seen < lease then -- the data was lost: time for the living to report
  flags, quarantine = 2, now + math.ceil(lease / 3)
  redis.call('ZADD', key, int(quarantine), '?')
end
if quarantine then flags = flags + 4 end

local live = redis.call('ZCOUNT', key, '(1', '+inf')
if quarantine then live = live - 1 end
local free = quarantine and 0 or limit - live

-- The line. A party's count is how many slots it has had since it came into it; who comes begins with the least that there is.
local line, mine, least, wanting = {}, nil, nil, 0
local standing = redis.call('ZRANGEBYSCORE', key, '-inf', '(0', 'WITHSCORES')
for i = 1, #standing, 2 do
  local member = standing[i]
  if -standing[i + 1] <= now then
    redis.call('ZREM', key, member)
  else
    local party = {
      member = member, id = string.sub(member, -16), since = string.sub(member, 2, 17), share = 0,
      count = math.min(tonumber(string.sub(member, 18, 33)) or 0, 2 ^ 52), -- beyond it ends no search
    }
    if party.id == id then mine = party else
      party.want = tonumber(string.sub(member, 34, 36)) or 1
      line[#line + 1], wanting = party, wanting + party.want
      if not least or party.count < least then least = party.count end
    end
  end
end
local others = #line
local me = mine or {id = id, since = instant, count = least or 0, share = 0}
me.want = wanted

-- The free slots are dealt out as if one by one, each to who has had the fewest so far and, among equals, has waited longest. So a
-- process that is slow to fetch what is its own does not lose it to a fast one. Who will not wait gets what is left.
if free > 0 and others == 0 then
  me.share = math.min(free, wanted)
elseif free > 0 then
  if wait then line[#line + 1] = me else me.share = math.min(wanted, math.max(0, free - wanting)) end
  -- How many it takes until everybody has had so many, or has what it wants. One by one in a script would hold up the server where
  -- many slots come free at once: 1 s for 20,000 of them and 200 processes.
  local function deal(level)
    local dealt = 0
    for _, party in ipairs(line) do
      party.share = math.max(0, math.min(party.want, level - party.count))
      dealt = dealt + party.share
    end
    return dealt
  end
  local level, beyond = least, least + 1 -- dealt as far as the one, and not to the other
  for _, party in ipairs(line) do
    level, beyond = math.min(level, party.count), math.max(beyond, party.count + party.want + 1)
  end
  while beyond - level > 1 do
    local middle = math.floor((level + beyond) / 2)
    if deal(middle) <= free then level = middle else beyond = middle end
  end
  local left, first = free - deal(level), {}
  for _, party in ipairs(line) do
    if party.share < party.want and party.count + party.share == level then first[#first + 1] = party end
  end
  table.sort(first, function(a, b) -- all find the same: two who came in one instant would each leave the slot to the other, for ever
    return a.since < b.since or a.since == b.since and a.id < b.id
  end)
  for i = 1, math.min(left, #first) do first[i].share = first[i].share + 1 end
  if wait then line[#line] = nil end
end

local granted, taken = 0, {}
if wanted > 0 and lives(known[2 + asked + renewals + 1]) then -- sent twice
  repeat granted = granted + 1
  until granted == wanted or not redis.call('ZSCORE', key, ARGV[at + granted + 1])
else
  granted = me.share
  for i = 1, granted do taken[2 * i - 1], taken[2 * i] = ends, ARGV[at + i] end
  me.count = me.count + granted
  live, free = live + granted, free - granted
end

local member = nil
if wait and granted < queued then
  if granted > 0 then me.since = instant end
  member = string.format('w%s%016.0f%03d', me.since, me.count, math.min(queued - granted, 999)) .. id
  taken[#taken + 1], taken[#taken + 2] = int(-now - patience), member
  flags = flags + 8
end
if mine and mine.member ~= member then
  redis.call('ZREM', key, mine.member)
  freed = freed + 1
end
if #taken > 0 then redis.call('ZADD', key, unpack(taken)) end

if freed > 0 and free > 0 and others > 0 then -- a hint for those whose turn it is; nothing hangs on it
  for _, party in ipairs(line) do
    if party.share > 0 then redis.pcall('PUBLISH', key .. ':' .. party.id, '') end
  end
end

local top = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
expire((math.max(tonumber(top[2]) - now, 0) + lease) / 1000)
return {now, flags, granted, live, quarantine or 0, released, table.concat(added)}
