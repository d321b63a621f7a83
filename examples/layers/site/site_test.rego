package site_test

import data.site

at(moment, effect) := {"now": {"epoch": floor(time.parse_rfc3339_ns(moment) / 1000000000)}, "tool": {"effect": effect}}

# 2026-01-05 is a Monday.
test_hours[note] if {
	some note, case in {
		"before": {"time": "2026-01-05T07:59:59Z", "want": {"outside_window"}},
		"the first second": {"time": "2026-01-05T08:00:00Z", "want": set()},
		"the last second": {"time": "2026-01-05T17:59:59Z", "want": set()},
		"after": {"time": "2026-01-05T18:00:00Z", "want": {"outside_window"}},
		"on a Friday": {"time": "2026-01-09T12:00:00Z", "want": set()},
		"on a Saturday": {"time": "2026-01-10T12:00:00Z", "want": {"outside_window"}},
		"in another zone": {"time": "2026-01-05T20:30:00+03:00", "want": set()},
	}
	found := site.deny with input as at(case.time, "write")
	{member.status | some member in found} == case.want
}

test_reading_at_any_time if {
	count(site.deny) == 0 with input as at("2026-01-10T03:00:00Z", "read")
}

test_without_a_time_it_is_closed if {
	found := site.deny with input as {"tool": {"effect": "write"}}
	{member.code | some member in found} == {"outside_window"}
}
