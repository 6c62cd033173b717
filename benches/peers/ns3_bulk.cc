// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Peer benchmark: N bulk TCP CUBIC flows over one drop-tail bottleneck in ns-3.
//
//   host 0 --+                         +-- host 0'
//   host 1 --+-- left ==RATE== right --+-- host 1'
//   ...      |                         |   ...
//
// --access says how many of the fast links a path has: 2 as drawn; 1, the sinks
// sit on "right"; 0, the sources sit on "left" as well. Every hop costs CPU time
// and changes goodput by less than 0.1 % over 30 s, so 0 is the reading kindest
// to ns-3.
//
// Prints one line of JSON. cpu_s is the user + system CPU time of
// Simulator::Run alone; building the topology is outside of it.
//
// The distribution's library has logging compiled in (switched off, but each
// log statement still tests a flag). A build of ns-3 without logging is up to
// 1.6 times faster, so whoever prints a ratio against cpu_s should print it
// divided by 1.6 as well.

#include "ns3_flow.h"

#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace
{

constexpr uint32_t kMaxFlows = 16384;      // /30 networks in a /16
constexpr double kAccessSpeedup = 20.0;    // access rate / bottleneck rate
constexpr double kAccessDelayShare = 0.05; // of the one-way delay, each side

NetDeviceContainer Link(Ptr<Node> a, Ptr<Node> b, double bps, Time delay, uint32_t packets)
{
    PointToPointHelper h;
    h.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(std::llround(bps)))));
    h.SetDeviceAttribute("Mtu", UintegerValue(kIpPacket));
    h.SetChannelAttribute("Delay", TimeValue(delay));
    h.SetQueue("ns3::DropTailQueue<Packet>",
               "MaxSize",
               QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    // Without flow control the stack gives the device no default queue
    // discipline, so the device's own queue is the only buffer.
    h.DisableFlowControl();
    return h.Install(a, b);
}

void RequireNoQueueDisc(Ptr<Node> node)
{
    Ptr<TrafficControlLayer> tc = node->GetObject<TrafficControlLayer>();
    for (uint32_t i = 0; tc && i < node->GetNDevices(); ++i)
    {
        NS_ABORT_MSG_IF(tc->GetRootQueueDiscOnDevice(node->GetDevice(i)),
                        "a device has a queue discipline on top of its queue");
    }
}

} // namespace

int main(int argc, char* argv[])
{
    uint32_t flows = 1;
    double rateMbps = 230;
    double rttMs = 30;
    double seconds = 30;
    uint32_t seed = 1;
    uint32_t access = 2;

    CommandLine cmd;
    cmd.AddValue("flows", "number of TCP flows", flows);
    cmd.AddValue("rate_mbps", "bottleneck rate, Mb/s", rateMbps);
    cmd.AddValue("rtt_ms", "round-trip propagation delay, ms", rttMs);
    cmd.AddValue("seconds", "simulated seconds", seconds);
    cmd.AddValue("seed", "random seed (start times), 1 or more", seed);
    cmd.AddValue("access", "fast links on each path besides the bottleneck: 0, 1 or 2", access);
    cmd.Parse(argc, argv);

    if (flows < 1 || flows > kMaxFlows || !(rateMbps > 0) || !(rttMs > 0) || !(seconds > 0) ||
        seed < 1 || access > 2)
    {
        std::fprintf(stderr, "ns3_bulk: an option is out of range\n");
        return 2;
    }

    RngSeedManager::SetSeed(seed);
    SetTcpDefaults();

    const double bps = rateMbps * 1e6;
    const uint32_t bdp =
        std::max(2u, uint32_t(std::llround(bps * rttMs * 1e-3 / (8.0 * kIpPacket))));
    const double oneWayMs = rttMs / 2;
    const Time accessDelay = NanoSeconds(std::llround(oneWayMs * kAccessDelayShare * 1e6));
    const Time coreDelay =
        NanoSeconds(std::llround(oneWayMs * 1e6) - int64_t(access) * accessDelay.GetNanoSeconds());
    // A sender's window never exceeds its buffer, so this access queue cannot overflow.
    const uint32_t accessQueue = kSocketBuffer / kMss + 1000;

    // Path and queue hold two BDPs; slow start may overshoot to twice that.
    const uint32_t ahead =
        uint32_t(std::min<uint64_t>(kSocketBuffer, 8ull * bdp * kIpPacket + (1u << 20)));

    NodeContainer routers, sources, sinks;
    routers.Create(2);
    sources.Create(access >= 1 ? flows : 0);
    sinks.Create(access >= 2 ? flows : 0);
    Ptr<Node> left = routers.Get(0);
    Ptr<Node> right = routers.Get(1);

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(routers);
    stack.Install(sources);
    stack.Install(sinks);

    // Sources live in 10.1/16, sinks in 10.2/16: one static route per router.
    const char* mask = "255.255.255.252";
    Ipv4AddressHelper coreNet("10.0.0.0", mask);
    Ipv4AddressHelper sourceNet("10.1.0.0", mask);
    Ipv4AddressHelper sinkNet("10.2.0.0", mask);
    Ipv4StaticRoutingHelper routing;
    auto routes = [&](Ptr<Node> n) { return routing.GetStaticRouting(n->GetObject<Ipv4>()); };

    NetDeviceContainer core = Link(left, right, bps, coreDelay, bdp);
    Ipv4InterfaceContainer coreIf = coreNet.Assign(core);
    routes(left)->AddNetworkRouteTo("10.2.0.0", "255.255.0.0", coreIf.GetAddress(1), 1);
    routes(right)->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", coreIf.GetAddress(0), 1);

    std::vector<Flow> all(flows);
    Ptr<UniformRandomVariable> startMs = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; ++i)
    {
        const double accessBps = bps * kAccessSpeedup;
        Ptr<Node> from = left;
        Ptr<Node> to = right;
        Ipv4Address toAddress = coreIf.GetAddress(1);
        if (access >= 1)
        {
            from = sources.Get(i);
            Ipv4InterfaceContainer a =
                sourceNet.Assign(Link(from, left, accessBps, accessDelay, accessQueue));
            sourceNet.NewNetwork();
            routes(from)->SetDefaultRoute(a.GetAddress(1), 1);
        }
        if (access >= 2)
        {
            to = sinks.Get(i);
            Ipv4InterfaceContainer b =
                sinkNet.Assign(Link(right, to, accessBps, accessDelay, accessQueue));
            sinkNet.NewNetwork();
            routes(to)->SetDefaultRoute(b.GetAddress(0), 1);
            toAddress = b.GetAddress(1);
        }

        Flow* f = &all[i];
        const uint16_t port = uint16_t(kPort + i);
        f->Listen(to, port);
        const InetSocketAddress peer(toAddress, port);
        const Time at = NanoSeconds(std::llround(startMs->GetValue(0, rttMs) * 1e6));
        Simulator::ScheduleWithContext(from->GetId(), at, [f, from, peer, ahead] {
            f->Start(from, peer, ahead);
        });
    }
    for (uint32_t i = 0; i < NodeList::GetNNodes(); ++i)
    {
        RequireNoQueueDisc(NodeList::GetNode(i));
    }

    Simulator::Stop(NanoSeconds(std::llround(seconds * 1e9)));
    const double before = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - before;

    uint64_t bytes = 0;
    uint64_t retransmissions = 0;
    for (const Flow& f : all)
    {
        bytes += f.Delivered();
        retransmissions += f.Retransmissions();
    }
    const uint64_t drops =
        DynamicCast<PointToPointNetDevice>(core.Get(0))->GetQueue()->GetTotalDroppedPackets();
    std::printf("{\"tool\":\"ns-" NS3_VERSION_TEXT "\",\"flows\":%" PRIu32
                ",\"rate_mbps\":%g,\"rtt_ms\":%g,\"simulated_s\":%g,\"seed\":%" PRIu32
                ",\"access_links\":%" PRIu32
                ",\"cpu_s\":%.3f,\"delivered_segments\":%" PRIu64
                ",\"goodput_mbps\":%.3f,\"retransmissions\":%" PRIu64
                ",\"queue_packets\":%" PRIu32 ",\"queue_drops\":%" PRIu64
                ",\"events\":%" PRIu64 "}\n",
                flows,
                rateMbps,
                rttMs,
                seconds,
                seed,
                access,
                cpu,
                bytes / kMss,
                double(bytes) * 8e-6 / seconds,
                retransmissions,
                bdp,
                drops,
                Simulator::GetEventCount());
    Simulator::Destroy();
    return 0;
}
