package report

import (
	"math"
	"strconv"
)

// The drawing area of every chart, in units of its SVG.
const (
	width, height            = 960.0, 300.0
	left, right, top, bottom = 64.0, 16.0, 16.0, 44.0
)

// maxPoints bounds the points of a drawn line, maxBars the bars of a chart: more would not be seen.
const maxPoints, maxBars = 480, 96

// Chart is a chart ready to be drawn: every number is a coordinate.
type Chart struct {
	Title, Description, XLabel string
	XTicks, YTicks             []tick
	Lines                      []line
	Bars                       []bar
	Legend                     []key
	Left, Right, Top, Bottom   float64 // of the plot
	Width, Height              float64
}

type tick struct {
	At   float64
	Text string
}

type line struct {
	Class, Path string
	Dots        []dot
}

type dot struct {
	X, Y float64
	Text string
}

type bar struct {
	Class               string
	X, Y, Width, Height float64
	Text                string
}

type key struct{ Class, Text string }

// axis maps values to coordinates.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return round(a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from))
}

// round keeps a coordinate to a tenth, which no eye tells from more.
func round(x float64) float64 { return math.Round(x*10) / 10 }

func newChart(title, description, xLabel string) *Chart {
	return &Chart{Title: title, Description: description, XLabel: xLabel, Left: left, Right: width - right, Top: top,
		Bottom: height - bottom, Width: width, Height: height}
}

// lossChart draws both series over the inner steps; nil if there is nothing to draw.
func lossChart(train, eval []Point) *Chart {
	train, eval = thin(finite(train)), finite(eval)
	if len(train)+len(eval) == 0 {
		return nil
	}
	lowX, highX, low, high := bounds(train, eval)
	c := newChart("Loss", "Training loss by inner step and eval loss by round, in nats a token", "inner step")
	xStep, yStep := niceStep((highX-lowX)/8), niceStep((high-low)/5)
	xStep = math.Max(xStep, 1)
	x := axis{lowX, math.Max(highX, lowX+1), c.Left, c.Right}
	y := axis{math.Floor(low/yStep) * yStep, math.Ceil(high/yStep) * yStep, c.Bottom, c.Top}
	if y.low == y.high {
		y.high += yStep
	}
	c.XTicks = ticks(x, xStep, func(v float64) string { return count(int(v)) })
	c.YTicks = ticks(y, yStep, func(v float64) string { return strconv.FormatFloat(v, 'f', decimals(yStep), 64) })
	for _, s := range []struct {
		class, name string
		points      []Point
		dots        bool
	}{{"a", "training, a step", train, false}, {"b", "eval, a round", eval, true}} {
		if len(s.points) > 0 {
			c.Lines = append(c.Lines, polyline(s.class, s.name, s.points, x, y, s.dots))
			c.Legend = append(c.Legend, key{s.class, s.name})
		}
	}
	return c
}

func polyline(class, name string, points []Point, x, y axis, dots bool) line {
	l := line{Class: class}
	for i, p := range points {
		px, py := x.at(float64(p.Step)), y.at(p.Value)
		verb := " L"
		if i == 0 {
			verb = "M"
		}
		l.Path += verb + coordinate(px) + " " + coordinate(py)
		if dots && len(points) <= maxBars || len(points) == 1 {
			l.Dots = append(l.Dots, dot{px, py, name + ": " + loss(p.Value) + " at step " + count(p.Step)})
		}
	}
	return l
}

// bytesChart draws what each round moved; nil without rounds. Many rounds share a bar.
func bytesChart(rounds []Round) *Chart {
	if len(rounds) == 0 {
		return nil
	}
	per := (len(rounds) + maxBars - 1) / maxBars
	type group struct {
		first, last int
		up, down    uint64
	}
	var groups []group
	most := 1.0
	for i := 0; i < len(rounds); i += per {
		part := rounds[i:min(i+per, len(rounds))]
		g := group{first: part[0].Round, last: part[len(part)-1].Round}
		for _, r := range part {
			g.up, g.down = g.up+r.BytesUp, g.down+r.BytesDown
		}
		groups = append(groups, g)
		most = math.Max(most, float64(g.up)+float64(g.down))
	}
	c := newChart("Bytes by round", "Bytes sent and received by all workers in each round", "round")
	step := niceStep(most / 5)
	y := axis{0, math.Ceil(most/step) * step, c.Bottom, c.Top}
	c.YTicks = ticks(y, step, func(v float64) string { return bytesText(uint64(v)) })
	slot := (c.Right - c.Left) / float64(len(groups))
	wide := math.Min(slot*0.72, 48)
	every := (len(groups) + 11) / 12
	for i, g := range groups {
		middle := c.Left + slot*(float64(i)+0.5)
		name := "round " + count(g.first)
		if g.last != g.first {
			name = "rounds " + count(g.first) + " to " + count(g.last)
		}
		base := y.at(float64(g.up))
		c.Bars = append(c.Bars,
			bar{"a", round(middle - wide/2), base, round(wide), round(c.Bottom - base), name + ": sent " + bytesText(g.up)},
			bar{"b", round(middle - wide/2), y.at(float64(g.up) + float64(g.down)), round(wide),
				round(base - y.at(float64(g.up)+float64(g.down))), name + ": received " + bytesText(g.down)})
		if i%every == 0 {
			c.XTicks = append(c.XTicks, tick{round(middle), count(g.first)})
		}
	}
	c.Legend = []key{{"a", "sent"}, {"b", "received"}}
	return c
}

func finite(points []Point) []Point {
	out := make([]Point, 0, len(points))
	for _, p := range points {
		if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) && math.Abs(p.Value) < 1e12 {
			out = append(out, p)
		}
	}
	return out
}

// thin replaces runs of neighbours by their mean, at the step in their middle.
func thin(points []Point) []Point {
	per := (len(points) + maxPoints - 1) / maxPoints
	if per <= 1 {
		return points
	}
	var out []Point
	for i := 0; i < len(points); i += per {
		part := points[i:min(i+per, len(points))]
		sum := 0.0
		for _, p := range part {
			sum += p.Value
		}
		out = append(out, Point{part[len(part)/2].Step, sum / float64(len(part))})
	}
	return out
}

func bounds(series ...[]Point) (lowX, highX, low, high float64) {
	lowX, highX, low, high = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, points := range series {
		for _, p := range points {
			lowX, highX = math.Min(lowX, float64(p.Step)), math.Max(highX, float64(p.Step))
			low, high = math.Min(low, p.Value), math.Max(high, p.Value)
		}
	}
	return lowX, highX, low, high
}

// niceStep is the step of 1, 2 or 5 times a power of ten that is at least x.
func niceStep(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// decimals is how many decimals tell ticks of a step apart.
func decimals(step float64) int { return max(0, int(-math.Floor(math.Log10(step)+1e-9))) }

func ticks(a axis, step float64, text func(float64) string) []tick {
	var out []tick
	for i := math.Ceil(a.low/step - 1e-9); i*step <= a.high+step*1e-9; i++ {
		out = append(out, tick{a.at(i * step), text(i * step)})
	}
	return out
}

func coordinate(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
