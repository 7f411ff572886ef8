package reward

import (
	"fmt"
	"strings"
)

// zen writes uzen as ZEN, exactly, with two to six decimals: people read no other unit.
func zen(uzen uint64) string {
	s := fmt.Sprintf("%d.%06d", uzen/million, uzen%million)
	keep := len(s) - 4
	return s[:keep] + strings.TrimRight(s[keep:], "0")
}
