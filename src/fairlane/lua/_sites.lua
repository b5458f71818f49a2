-- Which site a device belongs to: the one that `configure` set, else the one that came with the
-- first of the tasks that it has, else `default`.

-- The site of a device that gets a task with `given`: one that has tasks stays where it is.
local function site_for(d, given)
  local whole = d.whole
  if given == '' or d.site_is_set or whole.total + whole.leased > 0 then
    return d.site
  end
  return given
end

-- The task that a device without tasks gets puts it into a site.
local function join_site(d, site)
  if site ~= d.site then
    d.site = site
    call('HSET', d.meta, 'at_site', site)
  end
end

-- Move a device with tasks to another site: its tasks, its leases, and what it is ahead of v.
local function move_to_site(mac, site)
  local moved, first = {}, nil
  for name in string.gmatch(C.lanes, '[^,]+') do
    local d = device(mac, lane_of(name), first and first.whole)
    first = first or d
    leave(d)
    place_of(d)
    local tag = C.policy == 'fair' and tag_of(d)
    moved[#moved + 1] = { d, tag and math.max(0, tag - virtual_time(d.order)), d.leased }
    call('ZREM', d.order.finish, mac)
    if d.leased > 0 then
      count_leases(d, -d.leased)
    end
    step_back(d.lane, d.site)
  end
  count_site(first.site, -first.whole.total)
  count_site(site, first.whole.total)
  for _, m in ipairs(moved) do
    local d, ahead, leased = m[1], m[2], m[3]
    d.site, d.order, d.held = site, nil, nil
    if leased > 0 then
      count_leases(d, leased)
    end
    if ahead then
      local v = virtual_time(place_of(d))
      local tag, place = tag_of(d)
      put_tag(d, math.max(tag or 0, v + ahead), place)
    end
  end
end
