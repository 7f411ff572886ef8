package sim

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/simulate"
)

// simAnswer goes by its folder, or without one by the state root in which it ended.
func simAnswer(done []variant, dirs []string, swept bool) terminal.Answer {
	if !swept {
		return terminal.One(done[0].Simulation, simName(done[0], dirs, 0))
	}
	at := -1
	return terminal.Items("simulations", done, func(v variant) string { at++; return simName(v, dirs, at) })
}

func simName(v variant, dirs []string, i int) string {
	if i < len(dirs) {
		return dirs[i]
	}
	return v.StateRoot.String()
}

func printVariants(done []variant, sweep []string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, text := range sweep {
		key, _, _ := strings.Cut(text, "=")
		fmt.Fprintf(w, "%s\t", strings.ToUpper(key[strings.LastIndex(key, ".")+1:]))
	}
	fmt.Fprint(w, "ROUNDS\tEVAL LOSS\tBITS/BYTE\tVIRTUAL TIME\tUTILISATION\t"+
		"TOTAL MB SENT\tTOTAL MB RECEIVED\tPAID\tSLASHED\tDISPUTES\t")
	liars, _ := done[0].BrokeRules()
	if liars > 0 {
		fmt.Fprint(w, "BROKE RULES\tHAD TO LEAVE\t")
	}
	fmt.Fprintln(w, "STATE ROOT")
	for _, v := range done {
		for _, text := range sweep {
			key, _, _ := strings.Cut(text, "=")
			fmt.Fprintf(w, "%s\t", v.Settings[key])
		}
		ended, loss, root := fmt.Sprint(v.Rounds), fmt.Sprintf("%.4f", v.FinalEvalLoss), v.StateRoot.Short()
		bits := terminal.Figure(&v.BitsPerByte)
		if v.Modelled {
			loss, bits, root = "-", "-", "-"
		}
		if v.Halted != "" {
			ended += " (" + v.Halted + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f %%\t%.2f\t%.2f\t%s\t%s\t%d\t", ended, loss, bits, tenths(v.Seconds),
			100*v.Utilisation,
			float64(v.BytesUp)/1e6, float64(v.BytesDown)/1e6, terminal.Zen(v.PaidUzen), terminal.Zen(v.SlashedUzen),
			len(v.Disputes))
		if liars > 0 {
			n, out := v.BrokeRules()
			fmt.Fprintf(w, "%d\t%d\t", n, out)
		}
		fmt.Fprintln(w, root)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if peak := memory.Peak(); peak > 0 {
		fmt.Printf("memory: %s at most\n", terminal.Bytes(peak))
	}
	if len(done) > 1 {
		return printSpreads(os.Stdout, spreads(done, sweep))
	}
	return printParties(done[0].Simulation)
}

// tenths is a time in tenths of a second.
func tenths(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second / 10)
}

func printParties(s *simulate.Simulation) error {
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTY\tMB SENT\tMB RECEIVED\tWORKED\tPAID\tSLASHED\tOUT OF THE RUN")
	for _, p := range s.Parties {
		name, out := p.Name, p.Out
		if p.Act != "" {
			name += " (" + p.Act + ")"
		}
		if out != "" {
			out = fmt.Sprintf("after %s: %s", tenths(p.OutSeconds), out)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t%s\t%s\t%s\n", name, float64(p.BytesUp)/1e6, float64(p.BytesDown)/1e6,
			tenths(p.WorkedSeconds), terminal.Zen(p.PaidUzen), terminal.Zen(p.SlashedUzen), out)
	}
	return w.Flush()
}
