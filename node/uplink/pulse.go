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

	limit time.Duration // without a block, from which on Gone is ready
	gone  *time.Timer   // nil: never
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
	if p.gone != nil {
		p.gone.Reset(p.limit)
	}
	if p.told {
		p.say(fmt.Sprintf("blocks come again, at height %d", height))
	}
	p.told = false
}

// GiveUp lets Gone be ready when from now on no block has come for a time; 0: never.
func (p *Pulse) GiveUp(after time.Duration) {
	if after > 0 {
		p.limit, p.gone = after, time.NewTimer(after)
	}
}

// Gone is ready when no block has come for the time of GiveUp: the process is to end.
func (p *Pulse) Gone() <-chan time.Time {
	if p.gone == nil {
		return nil
	}
	return p.gone.C
}

// Without says that no block has come for the time of GiveUp.
func (p *Pulse) Without() string {
	return fmt.Sprintf("no block came for %s from %s", p.limit, p.validator)
}

// Stop ends it.
func (p *Pulse) Stop() {
	p.silence.Stop()
	if p.gone != nil {
		p.gone.Stop()
	}
}
