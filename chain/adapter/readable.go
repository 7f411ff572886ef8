package adapter

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Parts of the SDK's error texts that are meant for its developers: the place in the source, and amounts in uzen.
var (
	sourcePlace = regexp.MustCompile(` \[[^\]\s]+\.go:\d+\]$`)
	uzenAmount  = regexp.MustCompile(`\b\d{1,19}uzen\b`)
)

// Readable returns the text of a refusal without places in source code, and with amounts in ZEN.
func Readable(text string) string {
	return uzenAmount.ReplaceAllStringFunc(sourcePlace.ReplaceAllString(text, ""), func(amount string) string {
		uzen, err := strconv.ParseUint(strings.TrimSuffix(amount, "uzen"), 10, 64)
		if err != nil {
			return amount
		}
		zen := strings.TrimRight(fmt.Sprintf("%d.%06d", uzen/1_000_000, uzen%1_000_000), "0")
		return strings.TrimSuffix(zen, ".") + " ZEN"
	})
}
