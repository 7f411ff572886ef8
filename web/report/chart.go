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
	Name                       string // of its file, without extension
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

func newChart(name, title, description string) *Chart {
	return &Chart{Name: name, Title: title, Description: description, Left: left, Right: width - right, Top: top,
		Bottom: height - bottom, Width: width, Height: height}
}

// xy is a point of a curve.
type xy struct{ x, y float64 }

// curve is a line of a chart.
type curve struct {
	class, name string
	points      []xy
	dots        bool // every point is marked, and says what it is
}

// scale is what the x axis of a chart counts.
type scale struct {
	label string
	unit  float64                // of which ticks are 1, 2 or 5 times a power of ten
	least float64                // between two ticks
	tick  func(v float64) string // at the axis
	at    func(v float64) string // of a point: "at step 40"
}

func steps() scale {
	whole := func(v float64) string { return count(int(v)) }
	return scale{"inner step", 1, 1, whole, func(v float64) string { return "at step " + whole(v) }}
}

func sentBytes() scale {
	text := func(v float64) string { return bytesText(uint64(v)) }
	return scale{"sent by all", 1, 1, text, func(v float64) string { return "after " + text(v) }}
}

// elapsed counts values in seconds, up to the highest, in units that suit it.
func elapsed(highest float64) scale {
	unit, label := 1.0, "seconds"
	if highest >= 2*3600 {
		unit, label = 3600, "hours"
	} else if highest >= 300 {
		unit, label = 60, "minutes"
	}
	return scale{label, unit, 0, func(v float64) string { return strconv.FormatFloat(v/unit, 'g', 6, 64) },
		func(v float64) string { return "after " + seconds(v) }}
}

// step is that of the ticks over a span, in what the axis counts.
func (s scale) step(span float64) float64 {
	return math.Max(s.unit*niceStep(span/8/s.unit), s.least)
}

// curveChart draws curves of losses over an axis; nil if there is nothing to draw.
func curveChart(c *Chart, s scale, curves []curve) *Chart {
	for i := range curves {
		curves[i].points = finite(curves[i].points)
		if !curves[i].dots {
			curves[i].points = thin(curves[i].points)
		}
	}
	lowX, highX, low, high := bounds(curves)
	if lowX > highX {
		return nil
	}
	if lowX == highX {
		highX++
	}
	yStep := niceStep((high - low) / 5)
	x := axis{lowX, highX, c.Left, c.Right}
	y := axis{math.Floor(low/yStep) * yStep, math.Ceil(high/yStep) * yStep, c.Bottom, c.Top}
	if y.low == y.high {
		y.high += yStep
	}
	c.XLabel = s.label
	c.XTicks = ticks(x, s.step(highX-lowX), s.tick)
	c.YTicks = ticks(y, yStep, func(v float64) string { return strconv.FormatFloat(v, 'f', decimals(yStep), 64) })
	for _, v := range curves {
		if len(v.points) > 0 {
			c.Lines = append(c.Lines, v.polyline(s, x, y))
			c.Legend = append(c.Legend, key{v.class, v.name})
		}
	}
	return c
}

func (v curve) polyline(s scale, x, y axis) line {
	l := line{Class: v.class}
	if !v.dots {
		l.Class += " thin"
	}
	for i, p := range v.points {
		px, py := x.at(p.x), y.at(p.y)
		verb := " L"
		if i == 0 {
			verb = "M"
		}
		l.Path += verb + coordinate(px) + " " + coordinate(py)
		if v.dots && len(v.points) <= maxBars || len(v.points) == 1 {
			l.Dots = append(l.Dots, dot{px, py, v.name + ": " + loss(p.y) + " " + s.at(p.x)})
		}
	}
	return l
}

func finite(points []xy) []xy {
	out := make([]xy, 0, len(points))
	for _, p := range points {
		if !math.IsNaN(p.y) && !math.IsInf(p.y, 0) && math.Abs(p.y) < 1e12 {
			out = append(out, p)
		}
	}
	return out
}

// thin replaces runs of neighbours by their mean, at the point in their middle.
func thin(points []xy) []xy {
	per := (len(points) + maxPoints - 1) / maxPoints
	if per <= 1 {
		return points
	}
	var out []xy
	for i := 0; i < len(points); i += per {
		part := points[i:min(i+per, len(points))]
		sum := 0.0
		for _, p := range part {
			sum += p.y
		}
		out = append(out, xy{part[len(part)/2].x, sum / float64(len(part))})
	}
	return out
}

func bounds(curves []curve) (lowX, highX, low, high float64) {
	lowX, highX, low, high = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, p := range c.points {
			lowX, highX = math.Min(lowX, p.x), math.Max(highX, p.x)
			low, high = math.Min(low, p.y), math.Max(high, p.y)
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
	for i := math.Ceil(a.low/step-1e-9) + 0; i*step <= a.high+step*1e-9; i++ {
		out = append(out, tick{a.at(i * step), text(i * step)})
	}
	return out
}

func coordinate(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
