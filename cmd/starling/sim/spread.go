package sim

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// spread is the results of the variants that differ in nothing but the seed.
type spread struct {
	settings []string // KEY=VALUE
	losses   []float64
}

// spreads groups variants by their settings but the seed, the least mean loss first. One that has no loss is left out.
func spreads(done []variant, sweep []string) (groups []spread) {
	for _, v := range done {
		if v.Modelled || v.Halted != "" {
			continue
		}
		var settings []string
		for _, text := range sweep {
			if key, _, _ := strings.Cut(text, "="); key != "seed" {
				settings = append(settings, key+"="+v.Settings[key])
			}
		}
		i := slices.IndexFunc(groups, func(g spread) bool { return slices.Equal(g.settings, settings) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, spread{settings: settings})
		}
		groups[i].losses = append(groups[i].losses, v.FinalEvalLoss)
	}
	slices.SortStableFunc(groups, func(a, b spread) int {
		x, y := a.mean(), b.mean()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return groups
}

func (s spread) mean() float64 {
	sum := 0.0
	for _, x := range s.losses {
		sum += x
	}
	return sum / float64(len(s.losses))
}

// deviation is the standard deviation of a sample; NaN of one.
func (s spread) deviation() float64 {
	mean, sum := s.mean(), 0.0
	for _, x := range s.losses {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(s.losses)-1))
}

// printSpreads says what settings are the best, and how far seeds differ.
func printSpreads(out io.Writer, groups []spread) error {
	if len(groups) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nby the mean of the eval loss, the least first:")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTINGS\tSEEDS\tMEAN\tSPREAD")
	for _, g := range groups {
		deviation := "-"
		if len(g.losses) > 1 {
			deviation = fmt.Sprintf("%.4f", g.deviation())
		}
		settings := strings.Join(g.settings, " ")
		if settings == "" {
			settings = "of the job file"
		}
		fmt.Fprintf(w, "%s\t%d\t%.4f\t%s\n", settings, len(g.losses), g.mean(), deviation)
	}
	return w.Flush()
}
