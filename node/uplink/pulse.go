package uplink

import (
	"fmt"
	"time"
)

// silent is how long no block arrives before the owner of a process gets a warning.
const silent = 30 * time.Second

// Pulse tells the owner of a process that no blocks come, once, and when they come again.
type Pulse struct {
	say       func(string)
	validator string
	silence   *time.Timer
	told      bool
}

// NewPulse begins to listen for the blocks of a validator.
func NewPulse(validator string, say func(string)) *Pulse {
	return &Pulse{say: say, validator: validator, silence: time.NewTimer(silent)}
}

// Silence is ready when no block has come for a while: then Silent is to be called.
func (p *Pulse) Silence() <-chan time.Time { return p.silence.C }

// Silent tells that no block comes, if that is not known yet. cut is why the way to the validator carries nothing; nil:
// it does.
func (p *Pulse) Silent(cut error) {
	why := fmt.Sprintf("the validator at %s is gone, or the network makes none", p.validator)
	if cut != nil {
		why = fmt.Sprint("the head of the local network carries nothing for this machine: ", cut)
	}
	if !p.told {
		p.say(fmt.Sprintf("no block came for %s: %s; the process keeps trying", silent, why))
	}
	p.told = true
}

// Block takes note of a block.
func (p *Pulse) Block(height int64) {
	p.silence.Reset(silent)
	if p.told {
		p.say(fmt.Sprintf("blocks come again, at height %d", height))
	}
	p.told = false
}

// Stop ends it.
func (p *Pulse) Stop() { p.silence.Stop() }
