package node_test

import (
	"testing"

	"github.com/starling-network/starling/node/hosting/provider"
)

func TestAdapterFlag(t *testing.T) {
	for value, want := range map[string]provider.Adapter{
		"a=dir":                     {Name: "a", Folder: "dir"},
		"a=dir,model=7":             {Name: "a", Folder: "dir", Model: 7},
		"a=d/e,job=job-1,part=30.5": {Name: "a", Folder: "d/e", Job: "job-1", PartPPM: 305_000},
		"a=d=e,part=100,job=x":      {Name: "a", Folder: "d=e", Job: "x", PartPPM: 1_000_000},
	} {
		if got, err := provider.ParseAdapter(value); err != nil || got != want {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "a", "=dir", "a=", "a=dir,model=0", "a=dir,model=x", "a=dir,part=101",
		"a=dir,part=NaN", "a=dir,job=", "a=dir,other=1", "a=dir,"} {
		if got, err := provider.ParseAdapter(value); err == nil {
			t.Errorf("%q is %+v", value, got)
		}
	}
}
