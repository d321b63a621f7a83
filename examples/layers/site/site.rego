# METADATA
# title: What this site adds, as an example
# description: Nothing is written while nobody is there to look at it. Reading is possible at any time.
# custom:
#   pack: office_hours
#   version: 1.0.0
package site

import data.site.lib

# METADATA
# title: Outside office hours
# description: The hours and days are those of data.site.hours, in UTC.
# custom:
#   code: outside_window
#   message: nothing is written outside office hours
#   remedy: Propose the call again within the hours of data.site.hours, or change them there.
deny contains {"code": meta.code, "message": meta.message, "status": "outside_window"} if {
	meta := rego.metadata.rule().custom
	input.tool.effect == "write"
	not lib.open
}
