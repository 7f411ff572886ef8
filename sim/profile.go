package sim

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

// ErrLink is returned by ParseLink.
var ErrLink = errors.New("no such link")

// ParseLink reads a link: the name of a profile, or settings such as "up=20,down=100,latency=50ms,loss=0.01", in
// Mbit/s, one way, and as a probability. What is not set is that of home.
func ParseLink(text string) (Link, error) {
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
		case "loss":
			l.Loss, err = strconv.ParseFloat(value, 64)
			if err == nil && !(l.Loss >= 0 && l.Loss < 1) {
				err = errors.New("it is no probability below 1")
			}
		default:
			err = errors.New("known are lan, metro, home, bad and global, and the settings up, down, latency and loss")
		}
		if err != nil {
			return Link{}, fmt.Errorf("%w: %q: %w", ErrLink, setting, err)
		}
	}
	return l, nil
}

func rate(text string) (float64, error) {
	r, err := strconv.ParseFloat(text, 64)
	if err == nil && !(r > 0 && r <= 1e6) {
		err = errors.New("it is not between 0 and a million Mbit/s")
	}
	return r * megabit, err
}
