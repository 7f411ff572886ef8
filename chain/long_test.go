package chain

import (
	"flag"
	"os"
)

// Long is read by the tests of package chain_test, too.
var Long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"run a client in JavaScript, and more blocks and validators, as .ci/run does")
