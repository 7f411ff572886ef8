// Command starling-device computes on the OpenCL devices of this machine for starling, which starts it as a child in a
// box and asks it over pipes. It is a program of its own because it loads drivers: it is linked dynamically, and what
// crashes or hangs with a driver is this process.
package main

import (
	"fmt"
	"os"

	"github.com/starling-network/starling/node/accelerator/answer"
	"github.com/starling-network/starling/node/boxed"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "starling starts this program: see starling bench device")
		os.Exit(2)
	}
	questions, answers := os.NewFile(boxed.Questions, "questions"), os.NewFile(boxed.Answers, "answers")
	if err := answer.All(questions, answers, os.NewFile(boxed.Memory, "memory")); err != nil {
		fmt.Fprintln(os.Stderr, "starling-device:", err)
		os.Exit(1)
	}
}
