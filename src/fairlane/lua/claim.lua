-- Lease up to `want` tasks of a lane, the device that is owed most first.
--
-- `want` 0 is as many as the lane has credits. A device's turn is one batch; a device that was
-- just served (`exclude_mac`) waits while another can go.
--
-- Returns  {next due time or 0, leased {id, attempt, type, mac, payload}…, expired ids, clock}
-- Errors   none
-- Twice    leases other tasks: not to be sent again
-- Flags    allow-oom
local L, want, holder = lane_of(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local exclude_mac, with_payload = ARGV[5], ARGV[6] == '1'
local fair = C.policy == 'fair'

resume(L, 64)
local room = want
if want == 0 then
  -- Most lanes have nobody who waits, most of the time.
  local somebody = call('ZCARD', (fair and SITES or SCHEDULE) .. L.suffix) > 0
  room = somebody and credits(L) or 0
end
local leased, expired, orders, several = {}, {}, {}, false
-- Every round takes a task or a device out, so this bound is met only by a spoilt queue.
for _ = 1, room > 0 and room + 64 or 0 do
  begin_round(L)
  local d = room > 0 and next_device(L, exclude_mac)
  if not d then
    break
  end
  local got, late, charged, gone = take(d, batch_size(d, room), holder, C.lease_ms, with_payload)
  save(d, -gone)
  settle_turn(d, charged)
  orders[d.site], several = d.order, several or d.site_tag
  for _, task in ipairs(got) do
    leased[#leased + 1] = task
  end
  for _, id in ipairs(late) do
    expired[#expired + 1] = id
  end
  room = room - #got
  exclude_mac = fair and '' or d.mac
end
if fair then
  orders[''] = several and order_of_sites(L) or nil
  for _, order in pairs(orders) do
    reap(order)
  end
end
end_round(L)
return { next_due(L), leased, expired, now }
