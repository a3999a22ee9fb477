-- How many permits live. It writes nothing.
if not redis.call('ZSCORE', key, '!') then
  if redis.call('EXISTS', key) == 1 then
    return redis.error_reply('ERR the key holds a sorted set that no bulkhead wrote: ' .. key)
  end
  return 0
end
local live = redis.call('ZCOUNT', key, '(' .. int(now), '+inf')
local quarantine = redis.call('ZSCORE', key, '?')
if quarantine and tonumber(quarantine) > now then live = live - 1 end
return live
