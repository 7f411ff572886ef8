# Everything is plain go; this file only names the longer commands.

.PHONY: test long check race races ptx faults attacks proto

# Everything that needs neither a chain nor a network of processes. go test ./... is all of it.
test:
	go test '-ldflags=-s -w' ./canon/... ./compute/... ./exchange/... ./protocol/... ./network/... ./role/... ./web/... \
		./client/job/... ./chain/referee/... ./internal/lint

# Every case of the tables of which go test ./... plays a part.
long:
	STARLING_LONG=1 go test -p 4 -ldflags=-s -timeout 25m ./...

check:
	./.ci/run

race:
	go test -race -timeout 40m -skip 'Methods|Simulat|Advi|Generate|BaseModel|FineTuning' ./network/... ./node ./node/member ./node/provider

# Every kernel of devices in Oclgrind, which sees data races and elements outside of buffers (Debian: oclgrind).
races:
	go test ./node/opencl -count 1 -run TestKernelsHaveNoRaces -v -args -long

# The kernels of devices as PTX of NVIDIA's GPUs, and a lint of it (Debian: clang-15).
ptx:
	go test ./compute/device/suite -count 1 -run 'TestKernelsGiveRoundedPTX|TestLintSeesWhatCompilersDo' -v

# Machines and cables that fail in networks of processes: kills, pauses, full disks, wrong clocks, cut links.
faults:
	go test ./internal/fault -faults -skip 'TestAdversaries|TestForged|TestFederated|TestFloods|TestOperate|TestCollusion|TestOtherRollout' -v -parallel 2 -timeout 60m
	go test ./cmd/starling -run TestUpgradesUnderLoad -upgrades -v -timeout 10m
	go test ./cmd/starling -run TestUpgradesUnderLoad -upgrades -upgraded 20 -v -timeout 30m

# Floods of every interface, the guide for operators on three machines, accomplices with a quarter of all stake, and
# each way to forge answers.
attacks:
	go test ./internal/fault -faults -run 'TestFloods|TestOperate|TestCollusion|TestOtherRollout' -v -parallel 1 -timeout 40m

proto:
	$(MAKE) -C chain/proto
	$(MAKE) -C client/api/proto
