# Helpers of the site's rules; nothing here is asked by itself.
package site.lib

# METADATA
# title: Is the office open?
# description: By the time of the input, which is the only clock. Without a time it is not.
open if {
	moment := input.now.epoch * 1000000000
	[hour, _, _] := time.clock(moment)
	hour >= data.site.hours.from
	hour < data.site.hours.until
	time.weekday(moment) in data.site.hours.days
}
