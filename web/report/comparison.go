package report

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
)

// Comparison is several runs of one job that differ in some settings.
type Comparison struct {
	Name     string
	Keys     []string // of the settings
	Variants []Variant
}

// Variant is a run of a comparison.
type Variant struct {
	Name     string   // of its folder
	Settings []string // by key
	Report
}

// palette is the classes of the curves of a comparison, of which more would not be told apart.
var palette = []string{"a", "b", "c", "e", "f", "g", "h", "i"}

// Write writes the page of c.
func (c Comparison) Write(w io.Writer) error {
	drawn := c.drawn()
	type row struct {
		Variant
		Class string // of its curves; "": none
	}
	rows := make([]row, len(c.Variants))
	for i, v := range c.Variants {
		rows[i] = row{Variant: v}
		if k := slices.Index(drawn, i); k >= 0 {
			rows[i].Class = palette[k]
		}
	}
	return execute(w, "comparison", struct {
		Comparison
		Rows   []row
		Charts []*Chart
		Drawn  int
	}{c, rows, c.charts(), len(drawn)})
}

// Pictures returns the charts of a comparison as files.
func (c Comparison) Pictures() ([]Picture, error) { return pictures(c.charts()) }

// drawn is the variants whose curves are drawn: those that end with the lowest loss, in their order.
func (c Comparison) drawn() []int {
	var all []int
	for i, v := range c.Variants {
		if !math.IsNaN(v.Summary.FinalEvalLoss) {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Compare(c.Variants[a].Summary.FinalEvalLoss, c.Variants[b].Summary.FinalEvalLoss)
	})
	all = all[:min(len(all), len(palette))]
	slices.Sort(all)
	return all
}

// charts are the eval losses of all variants in one chart, by steps, bytes and time.
func (c Comparison) charts() []*Chart {
	bySteps, byBytes, byTime := []curve{}, []curve{}, []curve{}
	for k, i := range c.drawn() {
		v := c.Variants[i]
		one := curve{class: palette[k], name: c.label(v), dots: true}
		for _, p := range v.Eval {
			one.points = append(one.points, xy{float64(p.Step), p.Value})
		}
		bySteps = append(bySteps, one)
		_, eval := v.course(sent)
		one.points = eval.points
		byBytes = append(byBytes, one)
		_, eval = v.course(lasted)
		one.points = eval.points
		byTime = append(byTime, one)
	}
	_, highest, _, _ := bounds(byTime)
	var out []*Chart
	for _, x := range []*Chart{
		curveChart(newChart("loss", "Eval loss", "Eval loss of the variants by inner step, in nats a token"), steps(),
			bySteps),
		curveChart(newChart("loss-by-bytes", "Eval loss by bytes",
			"Eval loss of the variants by the bytes that all members have sent, in nats a token"), sentBytes(), byBytes),
		curveChart(newChart("loss-by-time", "Eval loss by time",
			"Eval loss of the variants by the time since the start, in nats a token"), elapsed(highest), byTime),
	} {
		if x != nil {
			out = append(out, x)
		}
	}
	return out
}

// label names a variant by its settings, each by the last part of its key.
func (c Comparison) label(v Variant) string {
	parts := make([]string, len(v.Settings))
	for i, setting := range v.Settings {
		parts[i] = c.Keys[i][strings.LastIndexByte(c.Keys[i], '.')+1:] + "=" + setting
	}
	return strings.Join(parts, ", ")
}
