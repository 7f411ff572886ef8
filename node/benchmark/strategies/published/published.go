// Package published compares the formulas of this repository for the share of time that workers spend in steps with
// tables of papers. It trains nothing.
package published

import (
	"math"
	"time"

	"github.com/starling-network/starling/sim/forecast"
	"github.com/starling-network/starling/sim/link"
)

// layered is a training step of equal layers whose updates are exchanged layer by layer, each as soon as its part of
// the backward pass is over and the previous exchange has ended: the model behind the tables of Streaming DiLoCo
// (Douillard et al. 2025). A third of a step is the forward pass.
type layered struct {
	layers    int
	step      float64 // seconds
	bits      float64 // of the update of all layers, that every replica sends
	steps     int     // from one exchange of a layer to the next
	fragments int     // exchanged in turn, of layers at equal distances
	delay     float64 // seconds that an exchange may take during training
}

// utilisation is the share of time in steps at so many bits a second.
func (m layered) utilisation(rate float64) float64 {
	var waits float64
	for f := range m.fragments {
		var end float64
		for l := (m.layers-1-f)/m.fragments*m.fragments + f; l >= 0; l -= m.fragments {
			ready := m.step * (1./3 + 2./3*float64(m.layers-l)/float64(m.layers))
			end = max(end, ready) + m.bits/float64(m.layers)/rate
		}
		waits += max(0, end-m.step-m.delay)
	}
	compute := float64(m.steps) * m.step
	return compute / (compute + waits)
}

// The bandwidths of the table: fifty from 0.1 to 10,000 Gbit/s, each so many times the one before.
const gridPoints = 50

func gridOf(gigabits float64) float64 { return (math.Log10(gigabits) + 1) * (gridPoints - 1) / 5 }

// needs is the bandwidth at which so much utilisation is reached, Gbit/s.
func (m layered) needs(utilisation float64) float64 {
	low, high := 1e-3, 1e6
	for range 100 {
		if middle := math.Sqrt(low * high); m.utilisation(1e9*middle) >= utilisation {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// bandwidths is the published table for two replicas, in Gbit/s for 50, 80, 90, 95 and 99 % of the time in steps, H =
// 100, bfloat16 but for the last row of each model, which has 4 bits.
var bandwidths = []struct {
	parameters, step float64
	layers           int
	rows             [5][5]float64 // data parallel, DiLoCo, streaming, overlapped by a step, that with 4 bits
}{
	{1e9, 0.1, 24, [5][5]float64{
		{86.8, 152.6, 184.2, 222.3, 569}, {1.4, 6.2, 13.3, 23.3, 86.8}, {1.4, 5.2, 9.1, 16, 28.1}, {1.4, 4.3, 6.2, 9.1, 11},
		{0.4, 0.9, 1.7, 2, 3},
	}},
	{10e9, 0.8, 48, [5][5]float64{
		{104.8, 222.3, 222.3, 268.3, 471.5}, {1.7, 7.5, 16, 33.9, 104.8}, {1.7, 5.2, 9.1, 13.3, 19.3},
		{1.7, 3.6, 5.2, 6.2, 7.5}, {0.4, 0.9, 1.4, 1.4, 1.7},
	}},
	{100e9, 4.9, 108, [5][5]float64{
		{184.2, 323.8, 390.7, 390.7, 471.5}, {3, 11, 23.3, 49.4, 184.2}, {2.4, 6.2, 9.1, 11, 19.3},
		{1.7, 3.6, 4.3, 5.2, 5.2}, {0.5, 0.9, 1.1, 1.1, 1.4},
	}},
}

// layersOfFragment is how many layers a fragment has in that table.
const layersOfFragment = 3

// BandwidthSteps compares the published table with the bandwidths that the model needs, rounded down to the grid. It
// returns the number of entries, the number of equal entries, and the largest difference in steps of the grid.
func BandwidthSteps() (entries, same int, worst float64) {
	for _, b := range bandwidths {
		plain := layered{layers: b.layers, step: b.step, bits: 16 * b.parameters, steps: 100, fragments: 1}
		parallel, streaming := plain, plain
		parallel.steps, streaming.fragments = 1, b.layers/layersOfFragment
		overlapped := streaming
		overlapped.delay = b.step
		short := overlapped
		short.bits = 4 * b.parameters
		for i, m := range []layered{parallel, plain, streaming, overlapped, short} {
			for k, u := range []float64{0.5, 0.8, 0.9, 0.95, 0.99} {
				away := math.Abs(math.Floor(gridOf(m.needs(u))) - math.Round(gridOf(b.rows[i][k])))
				entries++
				if away == 0 {
					same++
				}
				worst = max(worst, away)
			}
		}
	}
	return entries, same, worst
}

// IntellectPoints compares Round.Utilisation with the utilisation that INTELLECT-1 reports (Prime Intellect 2024, table
// 2), for its 38 minutes of inner steps and its median times of an exchange. It returns the largest difference, in
// percentage points.
func IntellectPoints() (worst float64) {
	for seconds, share := range map[int64]float64{103: 95.7, 382: 85.6, 469: 83.0} {
		r := forecast.Round{Workers: 2, Inner: 38 * time.Minute, Update: seconds, Link: link.Link{Up: 1, Down: 1}}
		worst = max(worst, math.Abs(100*r.Utilisation()-share))
	}
	return worst
}
