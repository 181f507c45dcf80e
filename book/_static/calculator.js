// The cost model of lessons 01, 08, 12, 16 and 21 as functions of plain numbers: seconds, bytes, bytes/s.
// tests/test_calculator.py compares them with helpers.exchange.
const calculator = {
    // what each of n ranks sends in a ring allreduce
    ringBytes: (n, bytes) => 2 * (n - 1) / n * bytes,

    exchange: (n, bytes, messages, latency, bandwidth) =>
        messages * latency + calculator.ringBytes(n, bytes) / bandwidth,

    // a step of n ranks, each of which computes as long as one rank does, and then exchanges
    speedUp(n, compute, exchange, overlap) {
        const step = overlap ? Math.max(compute, exchange) : compute + exchange
        return n * compute / step
    },

    // the fewest local steps between two exchanges with which this share of the time is spent computing
    localSteps: (compute, exchange, share) => Math.ceil(share / (1 - share) * exchange / compute - 1e-9),

    // servers of this bandwidth that n workers keep busy, each of which pulls and pushes `bytes` in a step
    servers: (n, compute, bytes, bandwidth) => Math.ceil(n * 2 * bytes / (compute * bandwidth) - 1e-9),

    young: (cost, between) => Math.sqrt(2 * cost * between),

    daly(cost, between) {
        const ratio = cost / (2 * between)
        return calculator.young(cost, between) * (1 + Math.sqrt(ratio) / 3 + ratio / 9) - cost
    },
}

function calculate() {
    const number = id => Number(document.getElementById(id).value)
    const say = (id, text) => { document.getElementById(id).textContent = text }
    const n = number("ranks"), compute = number("compute") / 1e3, bytes = number("megabytes") * 1e6
    const latency = number("latency") / 1e3, bandwidth = number("bandwidth") * 1e6
    const cost = number("cost") * 60, between = number("between") * 3600
    const fields = [...document.querySelectorAll("#calculator input[type=number]")]
    const wrong = fields.find(field => !field.checkValidity() || field.value === "")
    if (wrong) {
        say("answer-ranks", `"${wrong.labels[0].textContent.trim()}" has to be a number of at least ${wrong.min}.`)
        for (const id of ["answer-steps", "answer-servers", "answer-save"]) say(id, "")
        return
    }
    const exchange = calculator.exchange(n, bytes, number("messages"), latency, bandwidth)
    const gain = calculator.speedUp(n, compute, exchange, document.getElementById("overlap").checked)
    const steps = Math.max(1, calculator.localSteps(compute, exchange, 0.8))
    const servers = Math.max(1, calculator.servers(n, compute, bytes, bandwidth))
    const minutes = seconds => (seconds / 60).toPrecision(3)
    say("answer-ranks", `${n} ranks do ${gain.toFixed(2)} times the work of one in the same time (${
        (100 * gain / n).toFixed(0)}% efficiency): ${gain > 1 ? "they pay" : "one rank alone is faster"}. An exchange takes ${
        (1e3 * exchange).toPrecision(3)} ms.`)
    say("answer-steps", steps === 1
        ? "Exchange in every step: at least 80% of the time is computing."
        : `Exchange every ${steps} steps: then 80% of the time is computing. What that does to quality, measure.`)
    say("answer-servers", `${servers} parameter server${servers > 1 ? "s" : ""} of this bandwidth keep${
        servers > 1 ? "" : "s"} up with ${n} workers that pull and push ${number("megabytes")} MB in a step.`)
    say("answer-save", `Save every ${minutes(calculator.young(cost, between))} minutes by Young's rule, ${
        minutes(calculator.daly(cost, between))} by Daly's.`)
}

document.addEventListener("DOMContentLoaded", () => {
    const form = document.getElementById("calculator")
    if (!form) return
    form.addEventListener("input", calculate)
    calculate()
})
