package link

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const megabit = 1e6 / 8 // bytes

// Profiles are links that the literature compares methods on: a local network, a metropolitan one with a slow way up, a
// home, a bad home, and two continents.
var Profiles = map[string]Link{
	"lan":    {Latency: time.Millisecond / 2, Up: 1000 * megabit, Down: 1000 * megabit},
	"metro":  {Latency: 10 * time.Millisecond, Up: 110 * megabit, Down: 500 * megabit},
	"home":   {Latency: 25 * time.Millisecond, Up: 200 * megabit, Down: 200 * megabit},
	"bad":    {Latency: 50 * time.Millisecond, Up: 80 * megabit, Down: 80 * megabit},
	"global": {Latency: 100 * time.Millisecond, Up: 300 * megabit, Down: 300 * megabit},
}

// ErrLink is returned by Parse.
var ErrLink = errors.New("no such link")

// Parse reads a link: the name of a profile, or settings such as
// "up=20,down=100,latency=50ms,jitter=20ms,noise=0.3,loss=0.01", in Mbit/s, one way, as parts of the rates and as a
// probability. A value that is not set is that of home.
func Parse(text string) (Link, error) {
	if l, ok := Profiles[text]; ok {
		return l, nil
	}
	l := Profiles["home"]
	for setting := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(setting, "=")
		var err error
		switch key {
		case "up":
			l.Up, err = rate(value)
		case "down":
			l.Down, err = rate(value)
		case "latency":
			l.Latency, err = time.ParseDuration(value)
			if l.Latency < 0 {
				err = errors.New("it is negative")
			}
		case "jitter":
			l.Jitter, err = time.ParseDuration(value)
			if l.Jitter < 0 {
				err = errors.New("it is negative")
			}
			l.Jitter = max(l.Jitter, 1) // 0 would be the latency
		case "noise":
			l.Noise, err = part(value)
		case "loss":
			l.Loss, err = part(value)
		default:
			err = errors.New("known are lan, metro, home, bad and global, and the settings up, down, " +
				"latency, jitter, noise and loss")
		}
		if err != nil {
			return Link{}, fmt.Errorf("%w: %q: %w", ErrLink, setting, err)
		}
	}
	return l, nil
}

// String is the link as Parse reads it.
func (l Link) String() string {
	const mbit = 1e6 / 8
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	text := fmt.Sprintf("up=%s,down=%s,latency=%v", number(l.Up/mbit), number(l.Down/mbit), l.Latency)
	if l.Jitter != 0 {
		text += fmt.Sprintf(",jitter=%v", l.Jitter)
	}
	if l.Noise != 0 {
		text += ",noise=" + number(l.Noise)
	}
	if l.Loss != 0 {
		text += ",loss=" + number(l.Loss)
	}
	return text
}

// part reads a number from 0 to below 1.
func part(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && !(x >= 0 && x < 1) {
		err = errors.New("it is not between 0 and below 1")
	}
	return x, err
}

func rate(text string) (float64, error) {
	r, err := strconv.ParseFloat(text, 64)
	if err == nil && !(r > 0 && r <= 1e6) {
		err = errors.New("it is not between 0 and a million Mbit/s")
	}
	return r * megabit, err
}
