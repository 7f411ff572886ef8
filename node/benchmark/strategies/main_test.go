package strategies

import "flag"

// A whole measurement takes minutes, even a small one: it is made with this flag only.
var all = flag.Bool("long", false, "make a small measurement of everything, as .ci/run does")
