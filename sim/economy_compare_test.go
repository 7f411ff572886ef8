package sim

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// compare checks that the imported chain ends in the same state. The numbers of accounts that were made since are not
// the same: the SDK draws them from the hash of the whole state, in which the import has another history.
func (e *economy) compare() {
	number := regexp.MustCompile(`"account_number":"\d+"`)
	before, after := modules(e.t, e.w.ledger.App), modules(e.t, e.other)
	if text := string(after["upgrade"]); !strings.Contains(text, fmt.Sprintf(`{"name":"v2","height":%d}`, e.at)) {
		e.t.Errorf("the imported chain knows of the upgrades %s", text)
	}
	for name := range before {
		before[name], after[name] = number.ReplaceAll(before[name], nil), number.ReplaceAll(after[name], nil)
		if !bytes.Equal(before[name], after[name]) {
			e.t.Errorf("%s differs in the imported chain from %s", name, difference(before[name], after[name]))
		}
	}
}

// difference shows where two texts begin to differ.
func difference(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(x []byte) []byte { return x[max(0, i-300):min(len(x), i+300)] }
	return fmt.Sprintf("byte %d on:\n%s\n%s", i, around(a), around(b))
}
