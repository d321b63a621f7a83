# Reduces what go test -v prints: a package that passed to its closing line, another to what was said by the tests that
# failed or did not end, each with its verdict, and by no test in particular.

function say(line) { said[current] = said[current] line "\n" }

function forget() {
  for (i in names) delete names[i]
  for (i in known) delete known[i]
  for (i in said) delete said[i]
  n = 0
  current = ""
  race = 0
}

function tell(  i) {
  for (i = 0; i < n; i++) {
    if (!(names[i] in said)) continue
    if (said[names[i]] !~ /^ *--- FAIL: [^\n]*\n$/) print "=== " names[i]
    printf "%s", said[names[i]]
  }
  printf "%s", said[""]
  forget()
}

# enter makes what follows that of a test.
function enter(name) {
  current = name
  if (name == "" || name in known) return
  known[name] = 1
  names[n++] = name
}

# Tests whose output a race detector interrupts may pass all the same.
$0 == "==================" {
  if (race) { said[""] = said[""] $0 "\n"; race = 0; next }
  race = 1
}
race { said[""] = said[""] $0 "\n"; next }

/^(ok  |\?   )\t/ { print; fflush(); forget(); next }
/^FAIL\t/ { tell(); print; fflush(); next }
/^=== (RUN|PAUSE|CONT|NAME) / { enter($3); next }

/^ *--- (PASS|SKIP|FAIL): / {
  # A verdict is indented by the number of tests above its own. What is indented more is what a test printed.
  name = $3
  if (index($0, "-") - 1 <= 4 * gsub("/", "/", name)) {
    current = name
    if ($2 == "FAIL:") say($0)
    else { delete said[current]; current = "" }
    next
  }
}
{ say($0) }
END { tell() }
