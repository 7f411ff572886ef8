package report

import "math"

// charts are those of a run that there is something to draw in: its loss by inner step, by bytes and by time, and its
// bytes.
func (r Report) charts() []*Chart {
	var out []*Chart
	for _, c := range []*Chart{lossChart(r.Train, r.Eval, r.lossUnit()), r.lossByBytes(), r.lossByTime(),
		bytesChart(r.Rounds)} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// lossUnit is the unit of losses after what is drawn; those of rewards, and of noise, have none.
func (r Report) lossUnit() string {
	for _, unitless := range []string{"reward", "mse"} {
		if _, ok := r.Summary.FinalMeasured[unitless]; ok {
			return ""
		}
	}
	return ", in nats a token"
}

// lossChart draws both series over the inner steps; nil if there is nothing to draw. unit is that of losses.
func lossChart(train, eval []Point, unit string) *Chart {
	curves := []curve{{class: "a", name: "training, a step"}, {class: "b", name: "eval, a round", dots: true}}
	for i, series := range [][]Point{train, eval} {
		for _, p := range series {
			curves[i].points = append(curves[i].points, xy{float64(p.Step), p.Value})
		}
	}
	return curveChart(newChart("loss", "Loss", "Training loss by inner step and eval loss by round"+unit),
		steps(), curves)
}

func (r Report) lossByBytes() *Chart {
	c := newChart("loss-by-bytes", "Loss by bytes", "Loss by the bytes that all members have sent"+r.lossUnit())
	train, eval := r.course(sent)
	return curveChart(c, sentBytes(), []curve{train, eval})
}

func (r Report) lossByTime() *Chart {
	c := newChart("loss-by-time", "Loss by time", "Loss by the time since the start"+r.lossUnit())
	train, eval := r.course(lasted)
	curves := []curve{train, eval}
	_, highest, _, _ := bounds(curves)
	return curveChart(c, elapsed(highest), curves)
}

// Traffic and duration of rounds.
func sent(s Round) float64   { return float64(s.BytesUp) }
func lasted(s Round) float64 { return s.Seconds }

// course is the losses of rounds over the running sum of a figure of each; it has no points if the sum is 0.
func (r Report) course(took func(Round) float64) (train, eval curve) {
	train, eval = curve{class: "a", name: "training, mean of a round"},
		curve{class: "b", name: "eval, a round", dots: true}
	if len(r.Rounds) > 0 {
		eval.points = append(eval.points, xy{0, r.Summary.FirstEvalLoss})
	}
	at := 0.0
	for _, s := range r.Rounds {
		at += took(s)
		train.points = append(train.points, xy{at, s.Loss})
		eval.points = append(eval.points, xy{at, s.EvalLoss})
	}
	if at == 0 {
		train.points, eval.points = nil, nil
	}
	return train, eval
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
	c := newChart("bytes", "Bytes by round", "Bytes sent and received by all workers in each round")
	c.XLabel = "round"
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
