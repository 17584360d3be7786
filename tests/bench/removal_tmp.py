import os, statistics, subprocess, sys, tempfile, contextlib
from pathlib import Path
import yaml
from ipc.host.clock import monotonic
from supervisor.client.http import AgentClient
from supervisor.config.socket_path import admin_socket_path
from tests.bench.raw_pods import in_flight, make_pods, pods_of, remove_pod, start_pod
from tests.bench import test_start_rate as tsr
from tests.podman_service import running_service, IMAGE
N=int(sys.argv[1]); R=int(sys.argv[2]); tsr.PODS=N
def cpu(pid):
    f=Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split(); return (int(f[11])+int(f[12]))*10
class S: pass
def polite(m):
    m["spec"]["containers"][0]["command"]=["sh","-c","trap 'exit 0' TERM; sleep 1000000 & wait"]; return m
tmp=Path(tempfile.mkdtemp(prefix="rm-"))
with running_service(tmp) as sock:
    svc=S(); svc.socket=str(sock); svc.image=IMAGE
    ns=iter(range(1000)); svc.new_instance=lambda: f"test-{os.getpid()}-{next(ns)}"
    spid=next(int(p) for p in os.listdir("/proc") if p.isdigit() and b"system\0service" in Path(f"/proc/{p}/cmdline").read_bytes() and str(sock).encode() in Path(f"/proc/{p}/cmdline").read_bytes())
    instance=svc.new_instance()
    (tmp/"manifests").mkdir()
    conf=tmp/"r.yaml"
    conf.write_text(yaml.safe_dump({"apiVersion":"rootlet.dev/v1alpha1","kind":"RootletConfiguration","instanceName":instance,"staticPodPath":"manifests","stateDir":"state","memoryDir":"memory","podLogsDir":"logs","maxPods":200,"containerRuntimeEndpoint":f"unix://{sock}"}))
    def rootlet_round(prefix):
        f=tmp/f"{prefix}.yaml"; f.write_text(yaml.safe_dump_all(polite(tsr._manifest(p,instance)) for p in make_pods(N,prefix,IMAGE)))
        with AgentClient(admin_socket_path(instance)) as c:
            c.apply(f.read_bytes(), f.name); tsr._wait_until_ready(c)
            b=cpu(spid); t=monotonic()
            for p in make_pods(N,prefix,IMAGE): c.delete_pod("default", p.metadata.name)
            while len(c.get("/api/v1/namespaces/default/pods")["items"]): import time; time.sleep(0.05)
            return monotonic()-t, cpu(spid)-b
    def raw(n):
        def r(prefix):
            i=svc.new_instance()
            in_flight([start_pod(p,i,tmp) for p in make_pods(N,prefix,IMAGE)],4,str(sock))
            ids=pods_of(str(sock),i); b=cpu(spid)
            return in_flight([remove_pod(x) for x in ids],n,str(sock)), cpu(spid)-b
        return r
    log=(tmp/"agent.log").open("wb")
    agent=subprocess.Popen(["rootlet","run","--config",str(conf)],stdout=log,stderr=log)
    res={}
    try:
        tsr._wait_for_agent(instance,agent)
        for k in range(R):
            for w,f in {"rootlet":rootlet_round,"raw4":raw(4),"raw8":raw(8)}.items():
                res.setdefault(w,[]).append(f(f"r{k}{w}")); print(k,w,res[w][-1],flush=True)
    finally:
        subprocess.run(["rootlet","--instance",instance,"stop","--pods"],capture_output=True); agent.terminate(); agent.wait(60)
for w,v in res.items(): print(w,"pods/s",round(N/statistics.median(x for x,_ in v),2),[round(N/x,2) for x,_ in v],"service ms/pod",round(statistics.median(y for _,y in v)/N,1))
print("ratio rootlet/raw4",[round(a[0]/b[0],2) for a,b in zip(res["raw4"],res["rootlet"])])
