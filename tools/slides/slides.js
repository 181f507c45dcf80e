// One slide at a time: arrow keys, space, Page Up and Down, Home and End; a click goes on. N: the speaker's notes.
// Two windows of one talk go together, so that one can show the notes. #7 in the address is slide 7.
document.addEventListener("DOMContentLoaded", () => {
    const slides = [...document.querySelectorAll("section > section")]
    let shown = 0
    let fragments = 0 // how many of this slide are to be seen

    function show(number, wanted) {
        shown = Math.min(Math.max(number, 0), slides.length - 1)
        const parts = [...slides[shown].querySelectorAll(".fragment")]
        fragments = Math.min(wanted, parts.length)
        slides.forEach((slide, k) => slide.classList.toggle("shown", k === shown))
        parts.forEach((part, k) => part.classList.toggle("shown", k < fragments))
        document.getElementById("place").textContent = `${shown + 1} / ${slides.length}`
        history.replaceState(null, "", `#${shown + 1}`)
        scrollTo(0, 0)
    }

    function forward() {
        const more = slides[shown].querySelectorAll(".fragment").length > fragments
        if (more) show(shown, fragments + 1)
        else if (shown < slides.length - 1) show(shown + 1, 0)
    }

    function back() {
        if (fragments) show(shown, fragments - 1)
        else if (shown) show(shown - 1, Infinity)
    }

    const keys = {
        ArrowRight: forward, ArrowDown: forward, PageDown: forward, " ": forward,
        ArrowLeft: back, ArrowUp: back, PageUp: back,
        Home: () => show(0, 0), End: () => show(slides.length - 1, Infinity),
        n: () => document.body.classList.toggle("with-notes"),
    }

    function act(event, what) {
        event.preventDefault()
        what()
        localStorage.setItem(document.title, JSON.stringify([shown, fragments]))
    }

    document.addEventListener("keydown", event => {
        const plain = !event.ctrlKey && !event.altKey && !event.metaKey
        if (plain && event.key in keys) act(event, keys[event.key])
    })
    document.querySelector("main").addEventListener("click", event => {
        if (getSelection().isCollapsed) act(event, forward)
    })
    addEventListener("storage", event => {
        if (event.key === document.title) show(...JSON.parse(event.newValue))
    })
    addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1, 0))
    show((Number(location.hash.slice(1)) || 1) - 1, 0)
})
