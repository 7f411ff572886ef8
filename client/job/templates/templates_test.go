package templates

import (
	"testing"

	"github.com/starling-network/starling/client/job"
)

// Every template is a job file without a fault, and without a setting that has no effect where it is for.
func TestTemplates(t *testing.T) {
	all := All()
	if len(all) < 3 {
		t.Fatalf("%d templates", len(all))
	}
	for _, one := range all {
		j, err := job.Parse(one.File, one.Name+".yaml")
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			continue
		}
		if j.Name != one.Name || one.About == "" || j.Output.Dir != "./out/"+one.Name {
			t.Errorf("%s: it is called %q, is about %q, and writes to %s", one.Name, j.Name, one.About, j.Output.Dir)
		}
		if one.Name != "network" && len(j.Notes) > 0 {
			t.Errorf("%s: %v", one.Name, j.Notes)
		}
	}
}
