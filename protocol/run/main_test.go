package run

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Without this flag a part of the drawn runs is played.
var everything = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"play all drawn runs, and those of every version of the rules, as .ci/run does")

// howMany is how many drawn runs a test plays: most of them, or few.
func howMany(most, few int) int {
	if *everything {
		return most
	}
	return few
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the tests make much that is short-lived, of little live data
	os.Exit(m.Run())
}
