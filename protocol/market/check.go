package market

import (
	"slices"

	"github.com/starling-network/starling/protocol/registry"
)

// Checks reports whether a participant may audit work of a job with these conditions. Of verifiers only the place and
// the attestation are asked.
func (c *Conditions) Checks(p registry.Participant) bool {
	h := p.Hardware
	within := func(place string, in, out []string) bool {
		return (len(in) == 0 || slices.Contains(in, place)) && !slices.Contains(out, place)
	}
	return within(h.Region, c.Regions, c.NotRegions) && within(h.Jurisdiction, c.Jurisdictions, c.NotJurisdictions) &&
		(!c.Attested || p.Attested)
}
