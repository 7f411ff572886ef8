package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/registrant"
)

// Registration is the registry's view of the account, which is a participant, after a block.
func (c *Client) Registration(ctx context.Context, height int64) (v registrant.View, err error) {
	v.Height = height
	if v.Params, err = c.Registry.Params(ctx); err != nil {
		return v, err
	}
	if v.Self, err = c.Registry.Participant(ctx, c.Address()); err != nil {
		return v, err
	}
	switch u, _, err := c.Registry.Uptime(ctx, c.Address()); {
	case err == nil:
		v.Uptime = &u
	case !errors.Is(err, ErrNotFound):
		return v, err
	}
	v.Measurements, err = c.Registry.Measurements(ctx)
	return v, err
}

// Declare does what a registrant wants said on the chain: everything but Gauge. An Ask is for so many steps in each
// segment.
func (c *Client) Declare(ctx context.Context, a role.Action, steps uint32) error {
	switch a := a.(type) {
	case registrant.Beat:
		return c.Registry.Heartbeat(ctx)
	case registrant.Ask:
		return c.Registry.AskMeasure(ctx, steps)
	case registrant.Answer:
		return c.Registry.AnswerMeasure(ctx, a.Root)
	case registrant.Check:
		return c.Registry.CheckMeasure(ctx, a.Participant, a.Result)
	case registrant.Open:
		return c.Registry.OpenMeasure(ctx, a.Results)
	}
	return fmt.Errorf("client: no such message: %T", a)
}
