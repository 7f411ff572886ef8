package random

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"play the many messages of TestCoinsAreConserved, and a seed of TestRandomOperations again")

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the plays make much that is short-lived
	os.Exit(m.Run())
}
