package cpu

import (
	"flag"
	"os"
)

// Without this flag a part of the drawn programs is computed.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "compute all drawn programs, as .ci/run does")

// seeds are those of the programs that a test draws.
func seeds() uint64 {
	if *long {
		return 150
	}
	return 60
}
