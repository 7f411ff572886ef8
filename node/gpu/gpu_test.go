package gpu

import (
	"slices"
	"testing"
	"testing/fstest"
)

// An empty list of the GPUs that CUDA may use hides all of them, so a child gets it, and it gets no empty variable of
// another driver.
func TestEmptyVariables(t *testing.T) {
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "POCL_DEVICES"} {
		t.Setenv(name, "")
	}
	t.Setenv("HIP_VISIBLE_DEVICES", "1")
	t.Setenv("OCL_ICD_VENDORS", "/opt/vendors")
	if got, want := Chosen(), []string{"CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=1"}; !slices.Equal(got, want) {
		t.Errorf("chosen %q, want %q", got, want)
	}
	got, want := Variables("POCL_DEVICES", "OCL_ICD_VENDORS"), []string{"OCL_ICD_VENDORS=/opt/vendors"}
	if !slices.Equal(got, want) {
		t.Errorf("variables %q, want %q", got, want)
	}
}

func TestList(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	cards := fstest.MapFS{
		"proc/driver/nvidia/gpus/0000:65:00.0/information": file("Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ: 1\n"),
		"proc/driver/nvidia/gpus/0000:66:00.0/information": file("Model: \t\t NVIDIA A100-SXM4-40GB\n"),
		"sys/class/drm/card0/device/vendor":                file("0x10de\n"),
		"sys/class/drm/card0/device/device":                file("0x20b0\n"),
		"sys/class/drm/card1/device/vendor":                file("0x1002\n"),
		"sys/class/drm/card1/device/product_name":          file("Instinct MI210\n"),
		"sys/class/drm/card1/device/mem_info_vram_total":   file("68702699520\n"),
		"sys/class/drm/card1-HDMI-A-1/device/vendor":       file("0x1002\n"),
		"sys/class/drm/card2/device/vendor":                file("0x8086\n"),
		"sys/class/drm/card2/device/device":                file("0x56a0\n"),
		"sys/class/drm/card3/device/vendor":                file("0x1a03\n"), // what shows the console of a server
	}
	nouveau := fstest.MapFS{"sys/class/drm/card0/device/vendor": file("0x10de\n"),
		"sys/class/drm/card0/device/device": file("0x2204\n")}
	for _, c := range []struct {
		root fstest.MapFS
		smi  string
		want string
	}{
		{fstest.MapFS{}, "", ""},
		{cards, "", "2 x NVIDIA A100-SXM4-40GB, AMD Instinct MI210 (65520 MiB), Intel GPU 56a0"},
		{cards, "NVIDIA H100 80GB HBM3, 81559\n", "NVIDIA H100 80GB HBM3 (81559 MiB), AMD Instinct MI210 (65520 MiB), " +
			"Intel GPU 56a0"},
		{fstest.MapFS{}, "NVIDIA GB10, [N/A]\n\n", "NVIDIA GB10"},
		{nouveau, "", "NVIDIA GPU 2204"},
	} {
		if got := Text(list(c.root, c.smi)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
