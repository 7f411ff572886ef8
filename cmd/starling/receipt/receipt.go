// Package receipt shows receipts with their reasons, their arithmetic and their disputes. It finds none.
package receipt

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/node/rundir"
)

// Print shows a receipt.
func Print(e rundir.Explanation) {
	at := e.Job
	if e.OfRun() {
		at = fmt.Sprintf("round %d, unit %d", e.Round, e.Unit)
	}
	fmt.Printf("receipt %d  %s, %s, height %d\n  %s\n", e.Seq, e.Kind, at, e.Height, e.Explanation)
	for _, line := range e.Arithmetic {
		fmt.Printf("  = %s\n", line)
	}
	if d := e.Dispute; d != nil {
		fmt.Printf("  dispute of verifier %s with worker %s: %s\n", d.Challenger, d.Worker, Verdict(d.Verdict, d.Reason))
		for _, m := range d.Log {
			fmt.Printf("    height %-6d %-9s %s\n", m.Height, m.By, m.What)
		}
	}
}

// Verdict is the outcome of a dispute in words, with its reason if it has one.
func Verdict(outcome, reason string) string {
	outcome = strings.ReplaceAll(outcome, "_", " ")
	if reason == "" {
		return outcome
	}
	return fmt.Sprintf("%s (%s)", outcome, reason)
}
