package benchmark_test

import (
	"flag"
	"os"
)

// A whole measurement takes minutes, even a small one: it is made with this flag only.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"make a small measurement of everything, as .ci/run does")
