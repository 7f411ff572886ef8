// Package link is how machines of the simulator are connected: what a message and a blob take of time on a link, and
// links as text. It moves nothing: who waits for whom is sim's.
package link

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// AtOnce is how many blobs a machine fetches at the same time for one action.
const AtOnce = 4

// Link is how a machine is connected.
type Link struct {
	Latency  time.Duration // one way, without jitter
	Jitter   time.Duration // the most that is added to it at random; 0: as much again
	Up, Down float64       // bytes a second
	Noise    float64       // the part of Up and Down that a blob may miss, at random
	Loss     float64       // probability that a message must be sent again
}

// Noisy is a rate as one blob has it.
func (l Link) Noisy(random *rand.Rand, rate float64) float64 {
	if l.Noise == 0 {
		return rate // nothing is drawn: the same seed gives the same run as without the setting
	}
	return rate * (1 - l.Noise*random.Float64())
}

// again is how long it takes to notice that a message was lost.
const again = time.Second

// sendings is how often a message is sent at most, before it is taken to arrive.
const sendings = 10

// Delay is how long a short message is under way. A lost message is sent again: links are slow, not forgetful.
func (l Link) Delay(random *rand.Rand, bytes int) time.Duration {
	d := l.Latency + time.Duration(random.Float64()*float64(cmp.Or(l.Jitter, l.Latency))) + Over(bytes, l.Up)
	for range sendings {
		if random.Float64() >= l.Loss {
			break
		}
		d += again
	}
	return d
}

// Over is how long bytes take at a rate.
func Over(bytes int, rate float64) time.Duration {
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

// Slowest is about how long the slowest of n messages is under way: twice the latency, and as often again as the
// unluckiest of them is lost.
func (l Link) Slowest(n int) time.Duration {
	d, lost := 2*l.Latency, l.Loss
	for range sendings {
		d += time.Duration((1 - math.Pow(1-lost, float64(n))) * float64(again))
		lost *= l.Loss
	}
	return d
}
