package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheUserDatabaseNamesTheOperator(t *testing.T) {
	const passwd = `# a comment
root:x:0:0:root:/root:/bin/bash
+nis:x:7:7:::
-nis:x:7:7:::
:x:7:7:nobody's name::

short:x:8
maya:x:1000:1000:Maya,,,:/home/maya:/bin/sh
twin:x:1000:1000::/home/twin:/bin/sh
#gone:x:1001:1001::/:/bin/sh
  spaced:x:1002:1002::/:/bin/sh
1003:x:1004:1003::/:/bin/sh
unshelled:x:1005:1005::/:
word:x:ten:10::/:/bin/sh
signed:x:+1006:1006::/:/bin/sh
last:x:1007:1007::/:/bin/sh`
	for uid, want := range map[int]string{
		0: "root", 1000: "maya", 1002: "spaced", 1004: "1003", 1005: "unshelled", 1007: "last",
		7: "", 8: "", 10: "", 100: "", 1001: "", 1003: "", 1006: "", -1: "",
	} {
		assert.Equal(t, want, nameOf(uid, passwd), uid)
	}
}
