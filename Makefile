# Every target works for an ordinary user with Podman and for root on a bare Debian; configs/host/enter knows how.
.PHONY: help demo demo-down test test-slow test-cluster bench lint
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## start the agent on the demo pods and wait until every one is Ready
	@configs/host/enter configs/demo/up

demo-down: ## stop that agent and remove its pods
	@configs/host/enter configs/demo/down

test: ## everything that is quick enough to run always
	@tests/run

# What the virtual machine has and the other hosts lack; emulated it is too slow for more.
vm_tests := tests/e2e/test_cpu_and_memory_limits.py tests/e2e/test_resources.py tests/e2e/test_doctor.py \
	tests/e2e/test_resize.py tests/e2e/test_statistics.py tests/e2e/test_node_pressure.py \
	tests/e2e/test_fork_bombs.py tests/e2e/test_slices.py tests/contract/test_apparmor.py \
	tests/contract/test_slices_podman.py
# What takes a systemd and no controller: the same system without the machine, at full speed.
systemd_tests := tests/e2e/test_systemd.py tests/e2e/test_pauses.py tests/e2e/test_slices.py tests/e2e/test_bandwidth.py \
	tests/e2e/test_real_logind.py tests/e2e/test_doctor.py tests/contract/test_slices_podman.py \
	tests/contract/test_pauses_contract.py tests/contract/test_log_rotation_podman.py

test-slow: ## the long tests, the attacks, the simulation for 20 minutes and a day, new examples of the properties, routes to pods, the Podman tests also on Podman 5.4, 5.8 and 6.1, and in a machine (root only)
	@configs/host/enter python -m tests.sim --seeds 1..1000000 --minutes 20
	@configs/host/enter python -m tests.sim.day --pods 1000 --hours 24
	@configs/host/enter pytest -n 2 --hypothesis-profile explore tests/unit
	@configs/host/enter python -m tests.attack
	@configs/host/enter pytest -m "slow and not bench" --ignore tests/attack
	@tests/hosts/pod_routes || test $$? -eq 77
	@tests/hosts/neighbour experimental pytest -m podman tests/e2e/test_port_forwarder.py || test $$? -eq 77
	@for suite in trixie sid experimental; do \
		tests/hosts/debian $$suite pytest -m "podman and not slow and not bench" || test $$? -eq 77 || exit 1; done
	@tests/hosts/systemd pytest --timeout 300 $(systemd_tests) || test $$? -eq 77
	@tests/hosts/vm pytest --timeout 900 $(vm_tests) || test $$? -eq 77

test-cluster: ## the node against a real kube-apiserver and etcd, where both are on PATH
	@configs/host/enter pytest -rs tests/e2e/test_real_cluster.py

bench: ## starts, restarts, removal, idling, memory beside raw libpod calls, with aims: some 60 minutes; ARGS="--quick" a minute
	@configs/host/enter python -m tests.bench $(ARGS)

lint: ## ruff and mypy alone; `make test` has them too
	@configs/host/enter sh -c 'ruff check . && ruff format --check . && mypy'
